-- Renews read locks: extends what is there, creates nothing, shortens nothing. An owner that has the
-- write lock has more than it thinks; it is renewed, too. Trouble with one of them does not keep the
-- others from being renewed.
--
-- KEYS  for each: lock, the owner's timeout key (number 1), holds, revocation
-- ARGV  for each: owner, ttl in ms
-- Returns an array, for each: 1 renewed; 0 gone; for one that was revoked, the record of it; or an
--         error
-- include: holds
-- include: renewal

-- Whether it is renewed, and the error if that is not known.
local function renew(lock, timeout, holds, owner, ttl)
    local fields = redis.pcall('HMGET', lock, 'mode', owner, owner .. ':write')
    if fields.err or not fields[1] then
        return false, refusal(fields, 'HMGET')
    end
    if fields[3] then
        return renewed(lock, ttl)
    end
    local hold = redis.pcall('HGET', holds, owner)
    if not fields[2] or type(hold) ~= 'table' and lingers(hold) then
        return false
    end
    if refusal(hold, 'HGET') then
        return false, refusal(hold, 'HGET')
    end
    return renewed(timeout, ttl) and renewed(lock, ttl)
end

local replies = {}
for item = 1, #KEYS / 4 do
    local lock, timeout = KEYS[item * 4 - 3], KEYS[item * 4 - 2]
    local holds, revocation = KEYS[item * 4 - 1], KEYS[item * 4]
    local owner, ttl = ARGV[item * 2 - 1], tonumber(ARGV[item * 2])
    local done, reason = renew(lock, timeout, holds, owner, ttl)
    if done then
        renewed(holds, ttl)
        replies[item] = 1
    else
        replies[item] = reason or loss_of(revocation, owner)
    end
end
return replies

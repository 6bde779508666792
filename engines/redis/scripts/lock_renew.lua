-- Renews plain locks, fair locks and write locks: extends what is there, creates nothing, shortens
-- nothing. Trouble with one of them does not keep the others from being renewed.
--
-- KEYS  for each: lock, holds, revocation
-- ARGV  for each: field in the lock's hash (the owner, or <owner>:write), owner, ttl in ms
-- Returns an array, for each: 1 renewed; 0 gone; for one that was revoked, the record of it; or an
--         error
-- include: renewal

local replies = {}
for item = 1, #KEYS / 3 do
    local lock, holds, revocation = KEYS[item * 3 - 2], KEYS[item * 3 - 1], KEYS[item * 3]
    local field, owner, ttl = ARGV[item * 3 - 2], ARGV[item * 3 - 1], tonumber(ARGV[item * 3])
    local there = redis.pcall('HEXISTS', lock, field)
    if there == 1 then
        renewed(lock, ttl)
        renewed(holds, ttl)
        replies[item] = 1
    else
        replies[item] = refusal(there, 'HEXISTS') or loss_of(revocation, owner)
    end
end
return replies

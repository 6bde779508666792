-- Renews permits: extends what is there, creates nothing, shortens nothing. Trouble with one hold does
-- not keep the others from being renewed.
--
-- KEYS  for each: timeouts, holds, revocation
-- ARGV  for each: owner, ttl in ms, 16 bytes for each permit in one string (empty: all)
-- Returns an array, for each: 1 renewed; 0 gone; for one that was revoked, the record of it; or an
--         error
-- include: permits
-- include: renewal

local now = now_ms()

-- Whether all are, and the error if that is not known.
local function all_alive(timeouts, ids)
    for _, id in ipairs(ids) do
        local finish = redis.pcall('ZSCORE', timeouts, id)
        if type(finish) ~= 'string' or tonumber(finish) <= now then
            return false, refusal(finish, 'ZSCORE')
        end
    end
    return #ids > 0
end

local replies = {}
for item = 1, #KEYS / 3 do
    local timeouts, holds, revocation = KEYS[item * 3 - 2], KEYS[item * 3 - 1], KEYS[item * 3]
    local owner, ttl = ARGV[item * 3 - 2], tonumber(ARGV[item * 3 - 1])
    local hold = redis.pcall('HGET', holds, owner)
    local ids = ids_of(ARGV[item * 3], hold)
    local alive, reason = all_alive(timeouts, ids)
    reason = refusal(hold, 'HGET') or reason
    if alive and not reason and not (type(hold) == 'string' and lingers(hold)) then
        write_nothing(timeouts)
        prolong(timeouts, ids, now + ttl)
        if type(hold) == 'string' then
            keep_holds(holds, ttl)
        end
        replies[item] = 1
    else
        replies[item] = reason or loss_of(revocation, owner)
    end
end
return replies

-- What the claimer of an operation does with its claim.
--
-- KEYS  operation (see once_claim)
-- ARGV  claimant, 'complete', keep in ms, outcome
--       claimant, 'extend', how long the claim lasts in ms, how long it is remembered after that in ms
--       claimant, 'abandon'
-- Returns 1, or 0 when the claim is somebody else's, or it was done: a recorded outcome stays, and only
-- 'complete' with the same outcome may come again
local operation, claimant, settlement = KEYS[1], ARGV[1], ARGV[2]
local fields = redis.call('HMGET', operation, 'claimant', 'outcome')
if fields[1] ~= claimant then
    return 0
end
if fields[2] and not (settlement == 'complete' and fields[2] == ARGV[4]) then
    return 0
end
if settlement == 'complete' then
    redis.call('HSET', operation, 'outcome', ARGV[4])
    redis.call('PEXPIRE', operation, ARGV[3])
elseif settlement == 'abandon' then
    redis.call('HSET', operation, 'ends', 0)
else
    local time = redis.call('TIME')
    local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
    redis.call('HSET', operation, 'ends', string.format('%.0f', now + tonumber(ARGV[3])))
    redis.call('PEXPIRE', operation, tonumber(ARGV[3]) + tonumber(ARGV[4]))
end
return 1

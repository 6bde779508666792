-- Claims an operation, unless somebody is at it or it was done.
--
-- KEYS  operation (a hash: attempt, claimant, ends, and outcome once it was done)
-- ARGV  claimant, how long the claim lasts in ms, how long it is remembered after that in ms
-- Returns {'claimed', attempt}, {'running', ms until the claim ends} or {'done', outcome}
local operation, claimant = KEYS[1], ARGV[1]
local lasts, keep = tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local fields = redis.call('HMGET', operation, 'outcome', 'ends')
if fields[1] then
    return {'done', fields[1]}
end
if fields[2] and tonumber(fields[2]) > now then
    return {'running', tonumber(fields[2]) - now}
end
local attempt = redis.call('HINCRBY', operation, 'attempt', 1)
redis.call('HSET', operation, 'claimant', claimant, 'ends', string.format('%.0f', now + lasts))
redis.call('PEXPIRE', operation, lasts + keep)
return {'claimed', attempt}

-- Renews one key of a hold while the lock's slot moves to another server of a cluster: its keys are
-- on two servers then, and a script may rely on one of them only.
--
-- KEYS  the key
-- ARGV  ttl in ms; fields of the hash, if it is one: the owner has one of them
-- Returns which field there is, from 1 (without fields: 1); 0 when there is none, or no key
-- include: leases
-- include: looks

local key, ttl = KEYS[1], ARGV[1]

local found = 0
if #ARGV == 1 then
    found = redis.call('EXISTS', key)
end
for index = 2, #ARGV do
    local there = found == 0 and redis.pcall('HEXISTS', key, ARGV[index])
    local reason = refusal(there, 'HEXISTS')
    if reason then
        return reason
    end
    if there == 1 then
        found = index - 1
    end
end
if found > 0 and redis.call('PTTL', key) ~= -1 then
    extend(key, ttl)
end
return found

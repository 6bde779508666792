-- include: looks

-- The answer for a hold that is gone: the record of its revocation if there is one, 0 otherwise.
local function loss_of(revocation, owner)
    local record = redis.pcall('GET', revocation)
    if type(record) == 'string' and string.sub(record, 1, #owner + 1) == owner .. ' ' then
        return record
    end
    return 0
end

-- Whether there was a lease of at least a moment's length; it is not shorter afterwards.
local function renewed(key, ttl)
    local left = redis.call('PTTL', key)
    if left == -2 then
        return false
    end
    if left < ttl then
        redis.call('PEXPIRE', key, ttl)
    end
    return true
end

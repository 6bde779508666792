-- Milliseconds until `key` expires, at least 1; 0 when it has no end.
local function remaining(key)
    local left = redis.call('PTTL', key)
    if left < 0 then
        return 0
    end
    return math.max(left, 1)
end

-- Makes `key` live for `ttl` from now, unless it lives longer anyway.
local function extend(key, ttl)
    if redis.call('PTTL', key) < tonumber(ttl) then
        redis.call('PEXPIRE', key, ttl)
    end
end

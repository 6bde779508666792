-- Milliseconds until `key` expires, at least 1; 0 when it has no end.
local function remaining(key)
    local left = redis.call('PTTL', key)
    if left < 0 then
        return 0
    end
    return math.max(left, 1)
end

-- Gives a key that was just written its end. Where the server refuses that (a permission is missing) it
-- would stay for ever: then it goes, with the other keys named.
local function set_end(key, ttl, ...)
    if type(redis.pcall('PEXPIRE', key, ttl)) == 'table' then
        redis.call('DEL', key, ...)
        redis.call('PEXPIRE', key, ttl)  -- refused again: the script ends with the reason
    end
end

-- Writes a field of a hash that is to live for `ttl` from now at least, and may be new.
local function set_field(hash, ttl, field, value)
    local left = redis.call('PTTL', hash)
    if left ~= -2 and left < tonumber(ttl) then
        redis.call('PEXPIRE', hash, ttl)
    end
    redis.call('HSET', hash, field, value)
    if left == -2 then
        set_end(hash, ttl)
    end
end

-- Makes `key` live for `ttl` from now, unless it lives longer anyway.
local function extend(key, ttl)
    if redis.call('PTTL', key) < tonumber(ttl) then
        redis.call('PEXPIRE', key, ttl)
    end
end

-- What the scripts below begin with.

-- Whether a key is a lock that somebody holds: a hash whose fields are owners, each with a uuid, and
-- perhaps `mode`. Two fields tell; a hash may have millions.
local function is_lock(key)
    if redis.call('TYPE', key)['ok'] ~= 'hash' then
        return false
    end
    local owners = 0
    for _, field in ipairs(redis.call('HRANDFIELD', key, 2)) do
        if string.find(field, '^%x+%-%x+%-%x+%-%x+%-%x+:%-?%d') then
            owners = owners + 1
        elseif field ~= 'mode' then
            return false
        end
    end
    return owners > 0
end

local function refused(key)
    return redis.error_reply('HOLDFAST_LOCK "' .. key .. '" is the name of a lock, which would be'
        .. ' overwritten; give the resource a key of its own')
end


-- What the scripts below begin with.

-- Whether a key is a lock that somebody holds: a hash with one owner or, if it has a `mode`, with any
-- number. An owner's field has a uuid, its value is a number. Three fields tell; a hash may have
-- millions.
local function is_lock(key)
    if redis.call('TYPE', key)['ok'] ~= 'hash' then
        return false
    end
    local some = redis.call('HRANDFIELD', key, '3', 'WITHVALUES')
    if #some > 2 and not redis.call('HGET', key, 'mode') then
        return false
    end
    local owners = 0
    for index = 1, #some, 2 do
        local field, value = some[index], some[index + 1]
        if string.find(field, '^%x+%-%x+%-%x+%-%x+%-%x+:%-?%d') and string.find(value, '^%d+$') then
            owners = owners + 1
        elseif field ~= 'mode' or value ~= 'read' and value ~= 'write' then
            return false
        end
    end
    return owners > 0
end

local function refused(key)
    return redis.error_reply('HOLDFAST_LOCK "' .. key .. '" is the name of a lock, which would be'
        .. ' overwritten; give the resource a key of its own')
end


-- include: holds

-- What tells a lock's hash from somebody else's under the same name: its fields are owners, with a
-- uuid, and their values are numbers. Values of other fields may be large, and are not read.
local function is_owner(field)
    return string.find(field, owner_shape) ~= nil
end

local function is_number(value)
    return value and string.find(value, '^%d+$') ~= nil
end

local function not_a_lock()
    return wrong_kind('the name is not that of a lock: its hash has other fields')
end

-- Whether a hash without a mode is a lock: one owner has it, or has let it go for later. A server that
-- refused HDEL then left both fields.
local function is_plain(lock)
    if redis.call('HLEN', lock) > 2 then
        return false
    end
    local fields = redis.call('HKEYS', lock)
    table.sort(fields)
    local field, second = fields[1], fields[2]
    return is_owner(field) and not string.find(field, ':write$')
        and is_number(redis.call('HGET', lock, field))
        and (not second or second == field .. ':lingering')
end

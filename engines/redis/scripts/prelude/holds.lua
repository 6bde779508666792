-- What we know of a hold, in our own hash beside the lock, under the owner:
--     <first token> <token count> <since>[ lingering][ <permits> <16 bytes for each permit>]

-- An owner has a uuid.
local owner_shape = '^%x+%-%x+%-%x+%-%x+%-%x+:%-?%d'

local function wrong_kind(words)
    return redis.error_reply('WRONGKIND ' .. words)
end

-- The error if the `mode` of a hash is not one of a read/write lock's: the hash is somebody else's.
local function wrong_mode(mode)
    if not mode then
        return wrong_kind('the name is in use as a lock without readers')
    end
    if mode ~= 'read' and mode ~= 'write' then
        return wrong_kind('the name is not that of a lock: its hash has another mode')
    end
    return nil
end

-- Ends the script unless what is beside a lock, left over from earlier holders, may be removed.
-- Somebody else's key, which may be very large, is left as it is. Of many fields only a few are looked
-- at.
local function may_remove(holds)
    local kind = redis.call('TYPE', holds).ok
    local fields, step = {'not an owner'}, 1
    if kind == 'none' then
        return
    elseif kind == 'hash' and redis.call('HLEN', holds) > 32 then
        fields, step = redis.call('HSCAN', holds, '0', 'COUNT', '8')[2], 2
    elseif kind == 'hash' then
        fields = redis.call('HKEYS', holds)
    end
    for index = 1, #fields, step do
        local field = fields[index]
        if field ~= 'limit' and not string.find(field, owner_shape) then
            error('WRONGKIND the key ' .. holds .. ' beside the lock holds something else than its ' ..
                'holders; remove it: DEL ' .. holds, 0)
        end
    end
end

local function granted(first, count)
    return {1, first, tonumber(count)}
end

local function hold_text(first, count, since)
    return string.format('%d %s %s', first, count, since)
end

-- First token, token count and start of a hold; nothing when nobody knows them any more.
local function terms_of(text)
    if not text then
        return nil
    end
    local first, count, since = string.match(text, '^(%d+) (%d+) (%d+)')
    return tonumber(first), tonumber(count), since
end

local function lingers(text)
    return text and string.find(text, '^%d+ %d+ %d+ lingering') ~= nil
end

local function as_lingering(text)
    local terms = string.match(text or '', '^%d+ %d+ %d+')
    if not terms then
        return '0 0 0 lingering'
    end
    return terms .. ' lingering' .. string.sub(text, #terms + 1)
end

-- How many permits a hold has, and their ids in one string.
local function permits_of(text)
    local permits, start = string.match(text, '^%d+ %d+ %d+ (%d+) ()')
    if not permits then
        permits, start = string.match(text, '^%d+ %d+ %d+ lingering (%d+) ()')
    end
    return tonumber(permits), start and string.sub(text, start) or ''
end

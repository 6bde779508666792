-- Runs somebody's script if no larger token was seen, and remembers the token. The script stands in the
-- place of its name below, and sees its own keys and arguments only.
--
-- KEYS  fence, then the script's keys
-- ARGV  token, then the script's arguments
-- Returns {1, what the script returned}, or {0, the larger token}; an error if the script's first key
-- is a lock
local function script(KEYS, ARGV)
@HOLDFAST_SCRIPT@
end

local function without_first(list)
    local rest = {}
    for index = 2, #list do
        rest[index - 1] = list[index]
    end
    return rest
end

-- As texts: tokens have up to 64 bits, Lua's numbers 53.
local function is_larger(one, other)
    return #one > #other or (#one == #other and one > other)
end

local fence, token = KEYS[1], ARGV[1]
local seen = redis.call('GET', fence)
-- What was written under this fence is no lock.
if not seen and is_lock(KEYS[2]) then
    return refused(KEYS[2])
end
if seen and is_larger(seen, token) then
    return {0, seen}
end
redis.call('SET', fence, token)
local returned = script(without_first(KEYS), without_first(ARGV))
if returned == nil then
    returned = false  -- a list ends at its first nil
end
return {1, returned}

-- Who may be given a plain lock when it is released: one of those who wait for it, as
--     <owner> <ttl in ms> <token count> <token floor> <number of the question> <token counter>
-- It goes by itself soon after its owner last asked.

-- The wish there is, or nil.
local function wish_at(key)
    local wish = redis.pcall('GET', key)
    return type(wish) == 'string' and wish or nil
end

local function is_wish_of(owner, wish)
    return wish and string.sub(wish, 1, #owner + 1) == owner .. ' '
end

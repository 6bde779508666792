-- Who may be given a plain lock when it is released: a list of those who wait for it and want that, in
-- the order in which they came,
--     <owner> <ttl in ms> <token count> <alive until> <number of the question> <token counter>
--     and ` unheard <from>` of one that cannot listen: it asks again soon after that time
-- and the places of the others (`turns`). It goes by itself soon after the last of them asked. It is
-- short, because whoever asks looks for itself in all of it. When it is full the last place goes to
-- whoever asks last, and the one that had it asks again soon: so nobody is kept out for ever.

-- Where this owner's wish stands, from 1, and its text; nil and how many there are.
local function wish_of(owner, key)
    local wishes = redis.pcall('LRANGE', key, '0', '-1')
    local start = owner .. ' '
    local count = wishes.err and 0 or #wishes
    for place = 1, count do
        if string.sub(wishes[place], 1, #start) == start then
            return place, wishes[place]
        end
    end
    return nil, count
end

local function take_back_wish(owner, key)
    local place, wish = wish_of(owner, key)
    if place then
        redis.call('LREM', key, '1', wish)
    end
end

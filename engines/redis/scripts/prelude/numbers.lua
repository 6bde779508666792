-- The whole number in a string, or nothing. What is longer is somebody else's, and is not read.
local function number_at(key)
    local text = redis.call('GETRANGE', key, '0', '20')
    return #text <= 20 and string.find(text, '^%-?%d+$') and tonumber(text) or nil
end

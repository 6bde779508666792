-- So many places a plain lock has for requests, those of the others included.
local most_requests = 256

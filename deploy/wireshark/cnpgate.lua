-- Wireshark dissector for congestion notifications of RoCEv2: what Wireshark's own dissectors leave as unknown octets. It is a
-- postdissector: Ethernet, IP, UDP and InfiniBand are dissected as ever, and a tree "Congestion notification" with fields cnpgate.*
-- follows, and the columns Protocol and Info name the notification. It labels what is on the wire; "cnpgate decode" says whether a receiver would accept
-- it, ICRC included.
--
-- Formats: standard CNP (IBTA Annex A17), Fast CNP options 1 and 2 (draft-xiao-rtgwg-rocev2-fast-cnp), Long-haul CNP in RoCEv2 and
-- ICMPv6 format (draft-tian-ccwg-long-haul-cnp), PPFC (draft-xz-rtgwg-ppfc-rocv2), notification to a proxy
-- (draft-xiao-rtgwg-proxy-congestion-notification). Code points that no registry has assigned are preferences.

local cnp = Proto("cnpgate", "Congestion notification (cnpgate)")

cnp.prefs.extension = Pref.enum("CNP with the E or P bit", 1, "Long-haul CNP's E bit and PPFC's P bit are the same bit of the BTH",
  { { 1, "Long-haul CNP", 1 }, { 2, "PPFC", 2 }, { 3, "Neither", 3 } }, false)
cnp.prefs.option_type = Pref.uint("Fast CNP option type", 0x9e, "IPv6 option type of Fast CNP option 1")
cnp.prefs.trace_option_type = Pref.uint("Fast CNP option type with a trace", 0x9e, "IPv6 option type of Fast CNP option 2; may be the same")
cnp.prefs.icmpv6_type = Pref.uint("Long-haul CNP ICMPv6 type", 200, "ICMPv6 type of the Long-haul CNP")
cnp.prefs.object_class = Pref.uint("Long-haul CNP object class", 247, "Class-Num of the Long-haul CNP's Extension Objects")
cnp.prefs.proxy_port = Pref.uint("Proxy UDP port", 1022, "UDP destination port of notifications to a proxy")

local actions = { [0] = "Notify", [1] = "Pause", [2] = "Rate Reduce", [3] = "Resume" }
local metrics = { [0] = "Unspecified", [1] = "Queue depth (KB)", [2] = "Queue growth (KB/ms)", [3] = "ECN marking rate (percent)", [4] = "RTT (us)" }
local parameters = { [1] = " us", [2] = " percent", [3] = " percent" }
local pause_types = { [0] = "Pause", [1] = "Resume" }
local trace_types = { [0] = "Pre-allocated trace", [1] = "Incremental trace" }
local object_types = { [1] = "Timestamp", [2] = "Device identifier", [3] = "Path" }

-- Of each kind, the text of the Protocol column.
local protocols = {
  ["standard-cnp"] = "CNP", ["fast-cnp"] = "Fast CNP", ["long-haul-cnp"] = "Long-haul CNP", ["long-haul-cnp-icmpv6"] = "Long-haul CNP",
  ["ppfc"] = "PPFC", ["proxy-notification"] = "Proxy CN",
}

local F = {}
local fields = {}
-- field makes the ProtoField "cnpgate." .. name by one of ProtoField's functions.
local function field(make, name, title, ...)
  F[name] = ProtoField[make]("cnpgate." .. name, title, ...)
  fields[#fields + 1] = F[name]
end

field("string", "kind", "Kind")
field("uint8", "bth.opcode", "BTH opcode", base.HEX)
field("bool", "bth.fecn", "FECN", 8, nil, 0x80)
field("bool", "bth.becn", "BECN", 8, nil, 0x40)
field("bool", "bth.extension", "Extension (E or P bit)", 8, nil, 0x20)
field("uint16", "bth.p_key", "Partition key", base.HEX)
field("uint24", "bth.dest_qp", "DestQP")
field("uint24", "bth.psn", "PSN")
field("bytes", "cnp.reserved", "Reserved")
field("uint32", "icrc", "ICRC", base.HEX)
field("uint8", "fast_cnp.option_type", "Option type", base.HEX)
field("uint8", "fast_cnp.option_length", "Option data length")
field("uint8", "fast_cnp.option", "Fast CNP option")
field("uint8", "fast_cnp.reserved", "Reserved", base.HEX)
field("ipv6", "fast_cnp.congested_destination", "Congested destination")
field("uint8", "ioam.option_type", "IOAM option type", base.DEC, trace_types)
field("uint16", "ioam.namespace_id", "Namespace ID")
field("uint16", "ioam.node_len", "Node length (words)", base.DEC, nil, 0xf800)
field("uint16", "ioam.flags", "Flags", base.HEX, nil, 0x0780)
field("uint16", "ioam.remaining_len", "Remaining length (words)", base.DEC, nil, 0x007f)
field("uint24", "ioam.trace_type", "Trace type", base.HEX)
field("uint8", "ioam.reserved", "Reserved", base.HEX)
field("bytes", "ioam.node_data", "Node data")
field("uint8", "icmpv6.code", "Code")
field("uint8", "long_haul_cnp.level", "Congestion Level (of 255)")
field("uint8", "long_haul_cnp.action", "Action", base.DEC, actions, 0xc0)
field("uint8", "long_haul_cnp.reserved", "Reserved", base.HEX, nil, 0x3f)
field("uint16", "long_haul_cnp.parameter", "Parameter")
field("uint32", "long_haul_cnp.source_qp", "Source QP")
field("uint8", "long_haul_cnp.metric_type", "Metric Type", base.DEC, metrics)
field("uint24", "long_haul_cnp.metric_value", "Metric Value")
field("uint8", "extension.version", "Version", base.DEC, nil, 0xf0)
field("uint16", "extension.reserved", "Reserved", base.HEX, nil, 0x0fff)
field("uint16", "extension.checksum", "Checksum", base.HEX)
field("uint16", "object.length", "Length")
field("uint8", "object.class", "Class-Num")
field("uint8", "object.c_type", "C-Type")
field("bytes", "object.payload", "Payload")
field("bytes", "object.padding", "Padding")
field("absolute_time", "object.timestamp", "Timestamp", base.UTC)
field("string", "object.device", "Device identifier", base.UNICODE)
field("bytes", "object.path", "Path")
field("ipv4", "ppfc.congested_destination4", "Congested destination")
field("ipv6", "ppfc.congested_destination6", "Congested destination")
field("uint16", "ppfc.flags", "Flags", base.HEX, nil, 0xfffc)
field("uint16", "ppfc.pt", "PT", base.DEC, pause_types, 0x0003)
field("uint16", "ppfc.port", "Congestion port")
field("uint16", "ppfc.reserved", "Reserved", base.HEX)
field("uint16", "ppfc.duration", "Pause duration (us)")
field("uint8", "proxy.ip_version", "Flow's IP version", base.DEC, nil, 0xf0)
field("uint8", "proxy.r", "Reserved", base.DEC, nil, 0x08)
field("uint8", "proxy.level", "Congestion Level (of 7)", base.DEC, nil, 0x07)
field("uint8", "proxy.protocol", "Flow's protocol")
field("uint16", "proxy.reserved", "Reserved", base.HEX)
field("uint16", "proxy.source_port", "Flow's source port")
field("uint16", "proxy.destination_port", "Flow's destination port")
field("ipv4", "proxy.source4", "Flow's source")
field("ipv4", "proxy.destination4", "Flow's destination")
field("ipv6", "proxy.source6", "Flow's source")
field("ipv6", "proxy.destination6", "Flow's destination")
field("bytes", "proxy.invoking_packet", "Invoking packet")
cnp.fields = fields

local short = ProtoExpert.new("cnpgate.short", "It ends within a field or before the ICRC, or a length goes past its end", expert.group.PROTOCOL, expert.severity.WARN)
cnp.experts = { short }

-- What other dissectors have found. Of an ICMP error's quoted packet they find fields too: the outer packet's come first.
local ip_version = Field.new("ip.version")
local udp_port, udp_length = Field.new("udp.dstport"), Field.new("udp.length")
local icmpv6_type, ipv6_header = Field.new("icmpv6.type"), Field.new("ipv6.version")

-- add adds a field with the octets [at, at+n) of b; false if b is shorter.
local function add(tree, name, b, at, n)
  if b:len() < at + n then
    tree:add_proto_expert_info(short)
    return false
  end
  tree:add(F[name], b(at, n))
  return true
end

-- fast_cnp dissects the option b. It returns what it says, for the Info column, as do the functions for the other formats; "[short]" says that octets are
-- missing.
local function fast_cnp(tree, b)
  local n = b(1, 1):uint()
  local sub = tree:add(b(), "Fast CNP option")
  sub:add(F["fast_cnp.option_type"], b(0, 1))
  sub:add(F["fast_cnp.option_length"], b(1, 1))
  if n ~= 16 and n < 26 then
    sub:add_proto_expert_info(short)
    return " [short]"
  end
  sub:add(F["fast_cnp.option"], n == 16 and 1 or 2):set_generated()
  if n > 16 then
    sub:add(F["fast_cnp.reserved"], b(2, 1))
    sub:add(F["ioam.option_type"], b(3, 1))
    sub:add(F["ioam.namespace_id"], b(4, 2))
    sub:add(F["ioam.node_len"], b(6, 2))
    sub:add(F["ioam.flags"], b(6, 2))
    sub:add(F["ioam.remaining_len"], b(6, 2))
    sub:add(F["ioam.trace_type"], b(8, 3))
    sub:add(F["ioam.reserved"], b(11, 1))
    if n > 26 then
      sub:add(F["ioam.node_data"], b(12, n - 26))
    end
  end
  sub:add(F["fast_cnp.congested_destination"], b(n - 14, 16))
  return " Destination=" .. tostring(b(n - 14, 16):ipv6()) .. (n > 16 and " with IOAM trace" or "")
end

-- object reads one Extension Object at the front of b; it returns its length with padding, or nil.
local function object(tree, b)
  local n = b:len() >= 4 and b(0, 2):uint() or 0
  local whole = math.floor((n + 3) / 4) * 4
  if n < 4 or whole > b:len() then
    tree:add_proto_expert_info(short)
    return nil
  end
  local class, c_type = b(2, 1):uint(), b(3, 1):uint()
  local known = class == cnp.prefs.object_class and object_types[c_type]
  local sub = tree:add(b(0, whole), "Object: " .. (known or "class " .. class .. ", C-Type " .. c_type))
  sub:add(F["object.length"], b(0, 2))
  sub:add(F["object.class"], b(2, 1))
  sub:add(F["object.c_type"], b(3, 1))
  if n > 4 then
    sub:add(F["object.payload"], b(4, n - 4))
    if known and c_type == 1 and n == 12 then
      local seconds, fraction = b(4, 4):uint(), b(8, 4):uint()
      if seconds < 0x80000000 then -- NTP's era from 2036 on (RFC 5905 6)
        seconds = seconds + 0x100000000
      end
      sub:add(F["object.timestamp"], b(4, 8), NSTime.new(seconds - 2208988800, math.floor(fraction * 1e9 / 0x100000000)))
    elseif known and c_type == 2 then
      sub:add(F["object.device"], b(4, n - 4), b(4, n - 4):string(ENC_UTF_8))
    elseif known and c_type == 3 then
      sub:add(F["object.path"], b(4, n - 4))
    end
  end
  if whole > n then
    sub:add(F["object.padding"], b(n, whole - n))
  end
  return whole
end

-- extension dissects the Extension Structure b with its objects.
local function extension(sub, b)
  if not (add(sub, "extension.version", b, 0, 1) and add(sub, "extension.reserved", b, 0, 2)
    and add(sub, "extension.checksum", b, 2, 2)) then return end
  local at = 4
  while at < b:len() do
    local n = object(sub, b(at):tvb())
    if not n then return end
    at = at + n
  end
end

local function long_haul(tree, b)
  if not (add(tree, "long_haul_cnp.level", b, 0, 1) and add(tree, "long_haul_cnp.action", b, 1, 1)
    and add(tree, "long_haul_cnp.reserved", b, 1, 1)) then return " [short]" end
  local action = math.floor(b(1, 1):uint() / 64)
  local info = " " .. actions[action]
  if b:len() < 12 then
    tree:add_proto_expert_info(short)
    return info .. " Level=" .. b(0, 1):uint() .. " [short]"
  end
  local unit = parameters[action] or ""
  tree:add(F["long_haul_cnp.parameter"], b(2, 2)):append_text(unit)
  tree:add(F["long_haul_cnp.source_qp"], b(4, 4))
  tree:add(F["long_haul_cnp.metric_type"], b(8, 1))
  tree:add(F["long_haul_cnp.metric_value"], b(9, 3))
  if b:len() > 12 then
    extension(tree:add(b(12), "Extension"), b(12):tvb())
  end
  if unit ~= "" then
    info = info .. " " .. b(2, 2):uint() .. unit
  end
  return info .. " Level=" .. b(0, 1):uint() .. " SourceQP=" .. b(4, 4):uint()
end

-- ip_text is the address, of an IP version, at octet at of b.
local function ip_text(b, at, version)
  return tostring(version == 6 and b(at, 16):ipv6() or b(at, 4):ipv4())
end

local function ppfc(tree, b, version)
  local n = version == 6 and 16 or 4
  if b:len() < n + 8 then
    tree:add_proto_expert_info(short)
    return " [short]"
  end
  tree:add(F["ppfc.congested_destination" .. version], b(0, n))
  tree:add(F["ppfc.flags"], b(n, 2))
  tree:add(F["ppfc.pt"], b(n, 2))
  tree:add(F["ppfc.port"], b(n + 2, 2))
  tree:add(F["ppfc.reserved"], b(n + 4, 2))
  tree:add(F["ppfc.duration"], b(n + 6, 2))
  local pt = b(n, 2):uint() % 4
  return " " .. (pause_types[pt] or "PT " .. pt) .. " " .. b(n + 6, 2):uint() .. " us Destination=" .. ip_text(b, 0, version) .. " Port=" .. b(n + 2, 2):uint()
end

local function proxy(tree, b)
  local version = b:len() > 0 and math.floor(b(0, 1):uint() / 16) or 0
  local n = version == 6 and 16 or 4
  if version ~= 4 and version ~= 6 or b:len() < 8 + 2 * n then
    tree:add_proto_expert_info(short)
    return " [short]"
  end
  tree:add(F["proxy.ip_version"], b(0, 1))
  tree:add(F["proxy.r"], b(0, 1))
  tree:add(F["proxy.level"], b(0, 1))
  tree:add(F["proxy.protocol"], b(1, 1))
  tree:add(F["proxy.reserved"], b(2, 2))
  tree:add(F["proxy.source_port"], b(4, 2))
  tree:add(F["proxy.destination_port"], b(6, 2))
  tree:add(F["proxy.source" .. version], b(8, n))
  tree:add(F["proxy.destination" .. version], b(8 + n, n))
  if b:len() > 8 + 2 * n then
    tree:add(F["proxy.invoking_packet"], b(8 + 2 * n))
  end
  return " Level=" .. b(0, 1):uint() % 8 .. " Flow=" .. ip_text(b, 8, version) .. "," .. b(4, 2):uint() .. "," .. ip_text(b, 8 + n, version) .. ","
    .. b(6, 2):uint() .. ",protocol " .. b(1, 1):uint()
end

-- option_of returns the Fast CNP option, header and data, in the Destination Options header b, or nil.
local function option_of(b)
  local at = 2
  while at + 2 <= b:len() do -- each round takes an octet or more
    local type, n = b(at, 1):uint(), b(at + 1, 1):uint()
    if type == 0 then -- Pad1 is an octet alone
      at = at + 1
    elseif at + 2 + n > b:len() then
      return nil
    elseif type == cnp.prefs.option_type or type == cnp.prefs.trace_option_type then
      return b(at, 2 + n):tvb()
    else
      at = at + 2 + n
    end
  end
  return nil
end

-- find_option walks over the extension headers between the IPv6 header at octet at of b and the UDP header at last.
local function find_option(b, at, last)
  local next = b(at + 6, 1):uint()
  at = at + 40
  while at + 8 <= last do -- each round takes eight octets or more
    local n = 8 + 8 * b(at + 1, 1):uint()
    if next == 44 then -- Fragment
      n = 8
    elseif next == 51 then -- Authentication
      n = 8 + 4 * b(at + 1, 1):uint()
    end
    if at + n > last then return nil end
    local option = next == 60 and option_of(b(at, n):tvb())
    if option then return option end
    next, at = b(at, 1):uint(), at + n
  end
  return nil
end

-- titled starts the tree of a notification, whose octets are b.
local function titled(root, b, kind)
  local tree = root:add(cnp, b(), "Congestion notification: " .. kind)
  tree:add(F.kind, kind):set_generated()
  return tree
end

-- cnp_packet dissects what a UDP datagram to port 4791 carries, b, of which there were whole octets on the wire; option is the Fast CNP
-- option in front of it, or nil. It returns the kind and what the Info column says of it; nil if it is no notification.
local function cnp_packet(root, b, whole, option, version)
  if whole < 16 or b:len() < 12 or b(0, 1):uint() ~= 0x81 then return nil end
  local extended = math.floor(b(4, 1):uint() / 32) % 2 == 1
  local kind = "standard-cnp"
  if option then
    kind = "fast-cnp"
  elseif extended and cnp.prefs.extension == 1 then
    kind = "long-haul-cnp"
  elseif extended and cnp.prefs.extension == 2 then
    kind = "ppfc"
  end
  local tree = titled(root, b, kind)
  local info = option and fast_cnp(tree, option) or ""
  local bth = tree:add(b(0, 12), "BTH")
  bth:add(F["bth.opcode"], b(0, 1))
  bth:add(F["bth.p_key"], b(2, 2))
  bth:add(F["bth.fecn"], b(4, 1))
  bth:add(F["bth.becn"], b(4, 1))
  bth:add(F["bth.extension"], b(4, 1))
  bth:add(F["bth.dest_qp"], b(5, 3))
  bth:add(F["bth.psn"], b(9, 3))
  local n = math.min(whole - 16, b:len() - 12) -- captured of what is between BTH and ICRC
  if kind == "long-haul-cnp" and n > 0 then
    info = long_haul(tree, b(12, n):tvb())
  elseif kind == "ppfc" and n > 0 then
    info = ppfc(tree, b(12, n):tvb(), version)
  elseif n > 0 then
    tree:add(F["cnp.reserved"], b(12, n))
  end
  if b:len() < whole then
    tree:add_proto_expert_info(short)
  else
    tree:add_le(F.icrc, b(12 + n, 4))
  end
  return kind, info .. " DestQP=" .. b(5, 3):uint()
end

function cnp.dissector(tvb, pinfo, root)
  local kind, info
  local v4, v6 = ip_version(), ipv6_header()
  -- Wireshark calls the version of an IPv6 header ip.version, too.
  local version = v6 and (not v4 or v6.offset <= v4.offset) and 6 or v4 and 4 or nil
  if not version then return end
  local port, length, message = udp_port(), udp_length(), icmpv6_type()
  if port and length and not (message and message.offset < port.offset) then
    -- UDP's own length bounds it, within what was captured.
    local at = length.offset + 4
    local n = math.min(length.value - 8, tvb:len() - at)
    if n <= 0 then return end
    if port.value == 4791 then
      local option = version == 6 and find_option(tvb, v6.offset, port.offset - 2) or nil
      kind, info = cnp_packet(root, tvb(at, n):tvb(), length.value - 8, option, version)
    elseif port.value == cnp.prefs.proxy_port then
      kind = "proxy-notification"
      local b = tvb(at, n):tvb()
      info = proxy(titled(root, b, kind), b)
    end
  elseif message and message.value == cnp.prefs.icmpv6_type then
    kind = "long-haul-cnp-icmpv6"
    local first = message.offset
    if not v6 or v6.offset + 6 > tvb:len() then return end
    local last = v6.offset + 40 + tvb(v6.offset + 4, 2):uint()
    last = math.min(last, tvb:len())
    if last <= first then return end
    local b = tvb(first, last - first):tvb()
    local tree = titled(root, b, kind)
    info = " [short]"
    if add(tree, "icmpv6.code", b, 1, 1) and b:len() > 4 then
      info = long_haul(tree, b(4):tvb())
    end
  end
  if kind then
    pinfo.cols.protocol:clear_fence()
    pinfo.cols.protocol:set(protocols[kind])
    pinfo.cols.info:clear_fence()
    pinfo.cols.info:set(kind .. info)
  end
end

register_postdissector(cnp)

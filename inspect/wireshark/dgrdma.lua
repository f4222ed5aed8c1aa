-- DG/RDMA, OpenCPI's Datagram RDMA protocol (v1.07), for Wireshark and tshark.
--
-- Put this file into the folder for personal Lua plugins (Help, About, Folders),
-- usually ~/.local/lib/wireshark/plugins, or name it on the command line:
--
--   tshark -X lua_script:dgrdma.lua -r trace.pcap
--
-- Frames on Ethernet are known by their type, those in UDP by their looks, by
-- the ports in the preferences, or by Decode As. What is said in brackets comes
-- from other frames; what lies ahead is known from the second pass on: always in
-- Wireshark, in tshark with -2.
--
-- For Lua 5.2 to 5.4: no bit operators, and numbers may be floats, so they are
-- formatted with %d.

local format = string.format

local made, dgrdma = pcall(Proto, "dgrdma", "OpenCPI Datagram RDMA")
if not made then
  error("another dissector is called dgrdma already, OpenCPI's own or this one from another folder: load only one", 0)
end
-- UDP has two bytes before the frame, Ethernet has not.
local in_udp = Proto("dgrdma_in_udp", "DG/RDMA in UDP")

local HEADER, MESSAGE, PREFIX = 10, 24, 2
-- With a checksum a frame has as much as Ethernet carries at least.
local CHECKSUM, LEAST_CHECKED = 4, 46
-- A list of services has room for as many as MOST_SERVICES behind its own header.
local LIST, SERVICE, NAME, MOST_SERVICES = 4, 12, 8, 8
local SERVICES = LIST + MOST_SERVICES * SERVICE
local REFUSAL = 12
local ONES = 4294967295

-- A sealed frame has ids, counter, flags and salt in front, and a tag behind; shorter ones than on Ethernet there
-- are not. The datagrams of a handshake have these lengths.
local COUNTER, FLAGS, SALT, TAG, LEAST_SEALED, SEALED_MORE = 4, 9, 7, 16, 46, 29
local HANDSHAKE, NONCE, CHALLENGE, MAC, NOISE = 10, 8, 16, 12, 58
local ASKS = HANDSHAKE + NONCE + CHALLENGE + MAC
local SIZES = { [0] = ASKS, ASKS, ASKS + NOISE, ASKS + NOISE }
-- Between whom one has no id, counters stay below that.
local FEW_SEALED = 65536

-- A frame of a session has a longer header. In control frames a byte follows that says which one it is; each has a length, and an ACK
-- four bytes more for each of its ranges, and eight more if it has counts of marks (ECN).
local SESSION, MOST_COPIES, LONGEST_DELAY, MOST_RANGES, RANGE, MARKS = 18, 7, 65535, 64, 4, 8
local ACK, BYE, PROBE, PROBED, RESET, BELL = 1, 2, 3, 4, 5, 6
local CONTROL_SIZES = { 24, 28, 22, 22, 19, 19 }

-- LONGEST is more than the payload of any datagram.
local LONGEST = 65536

-- Ids further back than the largest window are taken for ahead, after a gap.
local BEHIND = 16384

---------------------------------------------------------------- fields

local kinds = { [0] = "data", "metadata", "flow control", "disconnect" } -- as OpenCPI names them
local HELLO, WELCOME, REFUSED, CONFIRM, REJECT = 0, 1, 4, 5, 6
local hellos = { [HELLO] = "HELLO", [WELCOME] = "WELCOME", [REFUSED] = "REFUSED", [CONFIRM] = "CONFIRM", [REJECT] = "REJECT" }
local refusals = { [0] = "another id is here", "no unknown sources are taken", "there is no room", "a seal is needed" }
local steps = { [0] = "question", "challenge", "first", "second" }
local controls = { [0] = "data", "ACK", "BYE", "PROBE", "PROBED", "RESET", "BELL" }
local again, asked, answered, acked = frametype.RETRANS_PREV, frametype.REQUEST, frametype.RESPONSE, frametype.ACK

local f = {
  prefix = ProtoField.bytes("dgrdma.prefix", "Ignored prefix"),
  dst = ProtoField.uint16("dgrdma.dst", "Destination endpoint"),
  src = ProtoField.uint16("dgrdma.src", "Source endpoint"),
  seq = ProtoField.uint16("dgrdma.seq", "Frame id"),
  ack_start = ProtoField.uint16("dgrdma.ack.start", "First acknowledged id"),
  ack_count = ProtoField.uint8("dgrdma.ack.count", "Acknowledged ids"),
  ack_last = ProtoField.uint16("dgrdma.ack.last", "Last acknowledged id"),
  flags = ProtoField.uint8("dgrdma.flags", "Flags", base.HEX),
  flags_messages = ProtoField.bool("dgrdma.flags.messages", "Messages follow", 8, nil, 0x01),
  flags_checksum = ProtoField.bool("dgrdma.flags.checksum", "Ends with a checksum", 8, nil, 0x02),
  flags_reserved = ProtoField.uint8("dgrdma.flags.reserved", "Reserved", base.HEX, nil, 0xfc),
  messages = ProtoField.uint32("dgrdma.messages", "Messages"),
  padding = ProtoField.bytes("dgrdma.padding", "Padding"),
  checksum = ProtoField.uint32("dgrdma.checksum", "Checksum (CRC32C)", base.HEX),
  checksum_right = ProtoField.bool("dgrdma.checksum.right", "Checksum is right"),

  msg = ProtoField.none("dgrdma.msg", "Message"),
  txn = ProtoField.uint32("dgrdma.msg.txn", "Transaction id"),
  caddr = ProtoField.uint32("dgrdma.msg.completion.addr", "Completion address", base.HEX),
  cval = ProtoField.uint32("dgrdma.msg.completion.value", "Completion value", base.HEX),
  count = ProtoField.uint16("dgrdma.msg.count", "Data messages in the transaction"),
  index = ProtoField.uint16("dgrdma.msg.index", "Index of this message"),
  addr = ProtoField.uint32("dgrdma.msg.addr", "Data address", base.HEX),
  len = ProtoField.uint16("dgrdma.msg.len", "Data length"),
  type = ProtoField.uint8("dgrdma.msg.type", "Type", base.DEC, kinds),
  more = ProtoField.uint8("dgrdma.msg.more", "Another message follows"),
  data = ProtoField.bytes("dgrdma.msg.data", "Data"),
  msg_padding = ProtoField.bytes("dgrdma.msg.padding", "Padding before the next message"),

  hello = ProtoField.uint16("dgrdma.session.handshake", "Handshake for a session", base.DEC, hellos),
  check = ProtoField.uint32("dgrdma.session.check", "Check", base.HEX),
  refusal_why = ProtoField.uint8("dgrdma.session.refused", "Why there is no session", base.DEC, refusals),
  refusal_id = ProtoField.uint16("dgrdma.session.refused.by", "Id of the endpoint that refuses, or welcomes"),
  refusal_size = ProtoField.uint64("dgrdma.session.refused.size", "Bytes of its memory and services"),
  services = ProtoField.uint8("dgrdma.session.services", "Sender's services"),
  service = ProtoField.none("dgrdma.session.service", "Service"),
  knows = ProtoField.uint8("dgrdma.session.knows", "Services it knows of the peer"),
  service_name = ProtoField.string("dgrdma.session.service.name", "Name"),
  service_base = ProtoField.uint32("dgrdma.session.service.base", "First address", base.HEX),
  hello_answers = ProtoField.framenum("dgrdma.session.answers", "Answers the frame of the handshake in", base.NONE, asked),
  hello_answered = ProtoField.framenum("dgrdma.session.answered_in", "Answered in frame", base.NONE, answered),

  flags_sealed = ProtoField.bool("dgrdma.flags.sealed", "Sealed, or of a handshake", 8, nil, 0x80),
  flags_handshake = ProtoField.bool("dgrdma.flags.handshake", "Of a handshake", 8, nil, 0x40),
  sealed = ProtoField.none("dgrdma.sealed", "Sealed frame"),
  counter = ProtoField.uint64("dgrdma.sealed.counter", "Counter"),
  key = ProtoField.uint8("dgrdma.sealed.key", "Receiver's key", base.DEC, nil, 0x0e),
  salt = ProtoField.bytes("dgrdma.sealed.salt", "Salt"),
  inside = ProtoField.uint32("dgrdma.sealed.length", "Length of the frame in it"),
  sealed_data = ProtoField.bytes("dgrdma.sealed.data", "Encrypted"),
  tag = ProtoField.bytes("dgrdma.sealed.tag", "Tag"),
  handshake = ProtoField.uint8("dgrdma.handshake", "Handshake", base.DEC, steps, 0x0e),
  nonce = ProtoField.bytes("dgrdma.handshake.nonce", "Nonce"),
  challenge = ProtoField.bytes("dgrdma.handshake.challenge", "Challenge"),
  mac = ProtoField.bytes("dgrdma.handshake.mac", "Shows that its sender has the key"),
  noise = ProtoField.bytes("dgrdma.handshake.noise", "Message of Noise"),
  unasked = ProtoField.bool("dgrdma.handshake.unasked", "Answers a sealed frame under a key that its sender does not know"),

  flags_session = ProtoField.bool("dgrdma.flags.session", "Of a session", 8, nil, 0x04),
  flags_control = ProtoField.bool("dgrdma.flags.control", "Control frame", 8, nil, 0x40),
  flags_copy = ProtoField.uint8("dgrdma.flags.copy", "Copy number", base.DEC, nil, 0x38),
  session_id = ProtoField.uint32("dgrdma.session.id", "Frame id"),
  session_copy = ProtoField.uint8("dgrdma.session.copy", "Which transmission of its id"),
  session_tag = ProtoField.uint32("dgrdma.session.tag", "Tag of the session", base.HEX),
  session_ack = ProtoField.uint32("dgrdma.session.up_to", "All ids came up to"),
  control = ProtoField.uint8("dgrdma.session.control", "Control", base.DEC, controls),
  echo = ProtoField.uint32("dgrdma.session.echo", "Frame that came last"),
  echo_copy = ProtoField.uint8("dgrdma.session.echo.copy", "Its copy number", base.DEC, nil, 0x38),
  echo_again = ProtoField.bool("dgrdma.session.echo.again", "It had come before", 8, nil, 0x01),
  echo_delay = ProtoField.uint16("dgrdma.session.echo.delay", "Microseconds since then"),
  range = ProtoField.none("dgrdma.session.range", "Ids that came"),
  range_first = ProtoField.uint32("dgrdma.session.range.first", "First"),
  range_count = ProtoField.uint16("dgrdma.session.range.count", "How many"),
  marks_ect0 = ProtoField.uint32("dgrdma.session.marks.ect0", "Frames that came with ECT(0)"),
  marks_ce = ProtoField.uint32("dgrdma.session.marks.ce", "Frames that came with CE"),
  bye_reason = ProtoField.uint8("dgrdma.session.reason", "Reason"),
  bye_sender = ProtoField.uint32("dgrdma.session.sender", "Epoch of the sender"),
  bye_receiver = ProtoField.uint32("dgrdma.session.receiver", "Epoch of the receiver"),
  probe = ProtoField.uint16("dgrdma.session.probe", "Length that is asked for, or came"),
  quoted_id = ProtoField.uint32("dgrdma.session.quoted.id", "Answers the frame with id"),
  quoted_copy = ProtoField.uint8("dgrdma.session.quoted.copy", "Its copy number"),
  quoted_ack = ProtoField.uint32("dgrdma.session.quoted.up_to", "It said that all ids came up to"),
  quoted_in = ProtoField.framenum("dgrdma.session.quoted.frame", "Answers the frame in", base.NONE, asked),

  first = ProtoField.framenum("dgrdma.analysis.retransmission_of", "Retransmission of frame", base.NONE, again),
  repeated = ProtoField.framenum("dgrdma.analysis.duplicate_of", "Duplicate of frame", base.NONE, again),
  previous = ProtoField.framenum("dgrdma.analysis.previous_copy", "Previous copy in frame", base.NONE, again),
  next = ProtoField.framenum("dgrdma.analysis.next_copy", "Next copy in frame", base.NONE, frametype.RETRANS_NEXT),
  copy = ProtoField.uint32("dgrdma.analysis.copy", "Copy number"),
  acked_in = ProtoField.framenum("dgrdma.analysis.acked_in", "Acknowledged in frame", base.NONE, answered),
  ack_time = ProtoField.relative_time("dgrdma.analysis.ack_time", "Time from first copy to acknowledgement"),
  acks = ProtoField.framenum("dgrdma.analysis.acks", "Acknowledges frame", base.NONE, acked),
  missing = ProtoField.uint32("dgrdma.analysis.missing", "Ids missing before this one"),
  differs = ProtoField.framenum("dgrdma.analysis.differs_from", "Differs from the transaction in frame"),

  begins = ProtoField.framenum("dgrdma.txn.begins_in", "Transaction begins in frame", base.NONE, asked),
  completes = ProtoField.framenum("dgrdma.txn.completes_in", "Transaction completes in frame", base.NONE, answered),
  txn_acked = ProtoField.framenum("dgrdma.txn.acked_in", "Transaction wholly acknowledged in frame", base.NONE, acked),
  txn_time = ProtoField.relative_time("dgrdma.txn.time", "Time from first frame to last acknowledgement"),
  txn_frame = ProtoField.framenum("dgrdma.txn.frame", "Frame of the transaction"),
}
dgrdma.fields = f

-- What costs most to show, and is left out where no filter asks for it.
local of_messages = {
  f.msg, f.txn, f.caddr, f.cval, f.count, f.index, f.addr, f.len, f.type, f.more, f.data, f.msg_padding,
  f.begins, f.completes, f.txn_acked, f.txn_time, f.txn_frame,
}

local function expert_field(name, text, group, severity)
  return ProtoExpert.new("dgrdma." .. name, text, expert.group[group], expert.severity[severity])
end

local x = {
  malformed = expert_field("malformed", "Malformed frame", "MALFORMED", "ERROR"),
  cut = expert_field("cut", "Cut short by the capture", "UNDECODED", "NOTE"),
  ids = expert_field("zero_id", "Endpoint id 0", "PROTOCOL", "WARN"),
  flags = expert_field("flags.bad", "Reserved flags are set", "PROTOCOL", "WARN"),
  unknown = expert_field("handshake.key_unknown", "A key that its receiver does not know", "SEQUENCE", "NOTE"),
  reset = expert_field("session.reset", "A session that its receiver does not have", "SEQUENCE", "WARN"),
  checksum = expert_field("checksum.bad", "Wrong checksum", "CHECKSUM", "ERROR"),
  type = expert_field("msg.type.bad", "Type that nobody sends", "PROTOCOL", "NOTE"),
  index = expert_field("msg.index.bad", "Index 0 or above the count", "PROTOCOL", "WARN"),
  count = expert_field("msg.count.zero", "Count 0 with data", "PROTOCOL", "NOTE"),
  empty = expert_field("msg.len.zero", "Data message without data", "PROTOCOL", "NOTE"),
  beyond = expert_field("msg.addr.wraps", "Data beyond the 32-bit address space", "PROTOCOL", "WARN"),
  aligned = expert_field("msg.completion.unaligned", "Completion word not written atomically", "PROTOCOL", "NOTE"),
  differ = expert_field("msg.txn.differs", "Transaction fields differ", "PROTOCOL", "ERROR"),
  again = expert_field("analysis.retransmission", "Retransmission", "SEQUENCE", "NOTE"),
  live = expert_field("analysis.live_header", "Transaction id of a later frame", "SEQUENCE", "WARN"),
  duplicate = expert_field("analysis.duplicate", "Duplicate", "SEQUENCE", "NOTE"),
  gap = expert_field("analysis.gap", "Ids are missing", "SEQUENCE", "NOTE"),
  late = expert_field("analysis.out_of_order", "Out of order", "SEQUENCE", "NOTE"),
  restart = expert_field("analysis.restart", "Ids began anew", "SEQUENCE", "WARN"),
  unsent = expert_field("analysis.ack_unseen", "Acknowledges ids ahead of those captured", "SEQUENCE", "WARN"),
}
dgrdma.experts = x

---------------------------------------------------------------- checksum

-- Lua 5.2 has no operator for exclusive or, and later ones have no library for it; what does not
-- compile is left out.
local bxor = bit32 and bit32.bxor or load("return function(a, b) return a ~ b end")()
local sums -- by byte, once they are needed

local function crc32c(bytes)
  if not sums then
    sums = {}
    for i = 0, 255 do
      local c = i
      for _ = 1, 8 do
        local half = math.floor(c / 2)
        c = c % 2 == 1 and bxor(half, 0x82f63b78) or half
      end
      sums[i] = c
    end
  end
  local c = ONES
  for i = 1, #bytes do
    c = bxor(math.floor(c / 256), sums[bxor(c % 256, bytes:byte(i))])
  end
  return bxor(c, ONES)
end

---------------------------------------------------------------- reading

-- Tables are made with all their fields at once: letting them grow takes most
-- of the time.
local function read_message(tvb, at)
  local txn, caddr, cval, count, index, addr, len, kind, more =
    Struct.unpack("<I4I4I4I2I2I4I2BB", tvb:raw(at, MESSAGE))
  return {
    at = at, txn = txn, caddr = caddr, cval = cval, count = count, index = index, addr = addr, len = len,
    type = kind, more = more, pad = 0,
  }
end

-- is_hello tells whether a message is of a handshake for a session.
local function is_hello(p, m)
  if p.count ~= 0 or m.count ~= 0 or m.len ~= 0 or m.caddr ~= ONES or m.cval ~= ONES or m.txn == 0 or m.more ~= 0 or not hellos[m.index] then
    return false
  elseif m.index == HELLO then
    return m.addr == 0
  elseif m.index == REFUSED then
    return m.addr == m.txn
  end
  return m.addr ~= 0
end

-- read_refusal reads why there is no session, and what its sender is, and returns where the frame ends.
local function read_refusal(tvb, p, off)
  if p.captured - off < REFUSAL then
    return p.cut and p.stop or off
  end
  local mark, why, id, size, high = Struct.unpack("<BBI2I4I4", tvb:raw(off, REFUSAL))
  if mark ~= 0x49 or not refusals[why] or id == 0 or (why == 0 and id == p.src) or high > 1 or (high == 1 and size > 0) then
    return off
  end
  p.refusal = { at = off, id = id, size = high * 4294967296 + size, why = why }
  return off + REFUSAL
end

-- read_services reads the list of its sender's services that may follow an
-- message of a handshake, all of it or nothing, and returns where the frame ends.
local function read_services(tvb, p, off)
  if p.captured - off < SERVICES then
    return p.cut and p.stop or off -- cut: with a list or without
  end
  local mark, count, knows, reserved = Struct.unpack("BBBB", tvb:raw(off, LIST))
  if mark ~= 0x53 or count > MOST_SERVICES or knows > MOST_SERVICES or reserved ~= 0 then
    return off
  end
  local all, known = {}, {}
  for i = 1, count do
    local at = off + LIST + (i - 1) * SERVICE
    local name = tvb:raw(at, NAME):match("^([a-z0-9%-]+)\0*$")
    if not name or known[name] then
      return off
    end
    known[name] = true
    all[i] = { at = at, name = name }
  end
  p.list, p.services, p.knows = off, all, knows
  if p.src == 0 and p.msgs[1].index == WELCOME and count < MOST_SERVICES then
    read_refusal(tvb, p, off + SERVICES - REFUSAL)
    if p.refusal and p.refusal.why > 0 then
      p.refusal = nil
    end
  end
  return off + SERVICES
end

-- read_messages reads what follows the header, and returns where it ends, and whether that is known.
local function read_messages(tvb, p)
  local off = p.at + (p.session and SESSION or HEADER)
  repeat
    if p.stop - off < MESSAGE then
      p.bad = "message header announced here needs 24 bytes"
      return p.stop
    end
    if p.captured - off < MESSAGE then
      return p.stop, false
    end
    local m = read_message(tvb, off)
    p.msgs[#p.msgs + 1] = m
    off = off + MESSAGE + m.len
    if off > p.stop then
      p.bad = "data length of the message reaches past the end of the datagram"
      return p.stop
    end
    if m.more ~= 0 then
      m.pad = -m.len % 8
      off = off + m.pad
      if off > p.stop then
        p.bad = "padding before the next message is cut off"
        return p.stop
      end
    end
  until m.more == 0
  p.hello = not p.session and #p.msgs == 1 and is_hello(p, p.msgs[1])
  if not p.hello then
    return off, true
  end
  local index = p.msgs[1].index
  if index == REJECT then
    return off, true
  end
  return (index == REFUSED and read_refusal or read_services)(tvb, p, off)
end

-- read_ranges reads the ranges of an ACK.
local function read_ranges(tvb, p, n)
  local last = 1 -- the id after the cumulative acknowledgement did not come
  for i = 1, n do
    local at = p.at + CONTROL_SIZES[ACK] + (i - 1) * RANGE
    if p.captured - at < RANGE then
      return
    end
    local first, count = Struct.unpack("<I2I2", tvb:raw(at, RANGE))
    if first <= last or count == 0 then
      p.bad = "ranges of acknowledged ids are not ascending and apart, or too many"
      return
    end
    last = first + count
    p.ranges[i] = { at = at, first = (p.upto + first) % 4294967296, count = count }
  end
end

-- read_control reads what follows the header of a control frame, and returns where it ends, and whether that is known.
local function read_control(tvb, p)
  local off, length = p.at + SESSION, p.stop - p.at
  local size = CONTROL_SIZES[p.control]
  if not size then
    p.bad = "control frame is of an unknown kind"
    return p.stop
  elseif length < size then
    p.bad = "control frame is cut off"
    return p.stop
  elseif p.captured - p.at < size then
    return p.stop, false
  end
  if p.control == ACK then
    local bits, delay, n = Struct.unpack("<BI2I2", tvb:raw(off + 1, 5))
    if n > MOST_RANGES then
      p.bad = "ranges of acknowledged ids are not ascending and apart, or too many"
      return p.stop
    end
    local marks = math.floor(bits / 2) % 2 * MARKS
    if length < size + n * RANGE + marks then
      p.bad = "control frame is cut off"
      return p.stop
    end
    p.again, p.echo, p.delay, p.ranges = bits % 2 == 1, math.floor(bits / 8) % 8, delay, {}
    read_ranges(tvb, p, n)
    size = size + n * RANGE
    if marks > 0 and p.captured - p.at >= size + marks then
      p.marks = { at = p.at + size }
      p.marks.ect0, p.marks.ce = Struct.unpack("<I4I4", tvb:raw(p.marks.at, marks))
    end
    size = size + marks
  elseif p.control == BYE then
    p.reason, p.sender, p.receiver = Struct.unpack("<BI4I4", tvb:raw(off + 1, 9))
  elseif p.control == PROBE or p.control == PROBED then
    p.probe = Struct.unpack("<I2", tvb:raw(off + 2, 2))
  end
  if p.control == PROBE then
    local asks = p.checked and p.probe - CHECKSUM or p.probe
    if not p.cut and p.stop ~= LONGEST and p.probe ~= length + (p.checked and CHECKSUM or 0) then
      p.bad = "probe of a length does not have that length"
    end
    size = math.max(size, asks)
  end
  return p.at + size, true
end

-- is_session tells a frame of a session from one of another kind with reserved flags: it says there that it has no messages, and
-- acknowledges nothing.
local function is_session(p)
  return p.flags < 128 and p.flags % 2 == 0 and math.floor(p.flags / 4) % 2 == 1 and p.count == 0
end

-- read_session reads the frame of a session, and returns where it ends, and whether that is known.
local function read_session(tvb, p)
  p.session, p.seq, p.start, p.has_messages = true, nil, nil, false
  local control = math.floor(p.flags / 64) % 2 == 1
  local header = control and SESSION + 1 or SESSION
  if p.captured - p.at < header then
    if not p.cut then
      p.bad = p.stop - p.at < SESSION and "session header needs 18 bytes" or "control frame is cut off"
    end
    return p.stop, false
  end
  p.id, p.copies = Struct.unpack("<I4", tvb:raw(p.at + 4, 4)), math.floor(p.flags / 8) % 8
  p.tag, p.upto = Struct.unpack("<I4I4", tvb:raw(p.at + 10, 8))
  p.control = control and tvb(p.at + SESSION, 1):uint() or 0
  if control and (p.control == 0 or p.control > BELL) then
    p.bad = not p.cut and "control frame is of an unknown kind"
    return p.stop
  end
  p.kind, p.numbered = controls[p.control], p.control == 0 or p.control == BELL
  if not control then
    return read_messages(tvb, p)
  end
  local finish, known = read_control(tvb, p)
  p.bad = not p.cut and p.bad -- else what is there says too little
  if p.captured < finish then
    p.ranges, p.marks, p.reason, p.probe = nil, nil, nil, nil
  end
  return finish, known
end

-- seal_of tells by the flags whether a datagram is sealed, or of a handshake, and which step that is.
local function seal_of(flags)
  if flags < 128 or flags % 2 == 1 or math.floor(flags / 16) % 4 ~= 0 then
    return nil
  end
  local handshake, index = math.floor(flags / 64) % 2 == 1, math.floor(flags / 2) % 8
  if not handshake then
    return "sealed", index
  end
  if SIZES[index] then
    return "handshake", index
  end
end

-- read_sealed makes p what can be read without a key, if that is what it is.
local function read_sealed(tvb, p)
  local seal, index = seal_of(p.flags)
  local length = p.stop - p.at
  if not seal or (p.stop ~= LONGEST and ((seal == "sealed" and length < LEAST_SEALED) or (seal == "handshake" and length ~= SIZES[index]))) then
    return false
  end
  local low, high = Struct.unpack("<I4B", tvb:raw(p.at + COUNTER, 5))
  p.seal, p.index, p.counter = seal, index, high * 4294967296 + low
  p.inside = p.stop ~= LONGEST and length - SEALED_MORE
  if seal == "handshake" and p.captured - p.at >= HANDSHAKE + NONCE then
    p.nonce = tvb:raw(p.at + HANDSHAKE, NONCE):gsub(".", function(c) return format("%02x", c:byte()) end)
  end
  p.unasked = index == 1 and p.nonce == ("00"):rep(NONCE)
  p.seq, p.start, p.count, p.has_messages = nil, nil, 0, false
  return true
end

-- read_frame reads the frame whose header is at at, and which ended at stop on
-- the wire. bad says what is wrong with it; cut, that not all of it was captured.
-- finish is where the frame ends, as opposed to what pads it.
local function read_frame(tvb, at, stop)
  local captured = math.min(tvb:captured_len(), stop)
  if captured - at < HEADER then
    local bad = stop - at < HEADER and "frame header needs 10 bytes"
    return { at = at, stop = stop, captured = captured, finish = stop, msgs = {}, bad = bad, cut = captured < stop }
  end
  local dst, src, seq, start, count, flags = Struct.unpack("<I2I2I2I2BB", tvb:raw(at, HEADER))
  local p = {
    at = at, stop = stop, captured = captured, finish = stop, msgs = {}, bad = false, cut = captured < stop,
    dst = dst, src = src, seq = seq, start = start, count = count, flags = flags,
    has_messages = flags % 2 == 1, hello = false, services = false,
  }
  if flags >= 128 and read_sealed(tvb, p) then
    return p
  end
  local session = is_session(p)
  p.checked = flags == 2 or flags == 3 or session and math.floor(flags / 2) % 2 == 1
  -- A fragment, and a frame that was cut, may lack the end where the checksum is.
  local whole = p.checked and not p.cut and stop ~= LONGEST and stop - at >= LEAST_CHECKED
  if whole then
    p.stop, p.captured = stop - CHECKSUM, stop - CHECKSUM
  end
  if session then
    p.finish, p.known = read_session(tvb, p)
  elseif p.has_messages then
    p.finish = read_messages(tvb, p)
  else
    p.finish = at + HEADER
  end
  if whole then
    p.checksum, p.stop, p.captured = stop - CHECKSUM, stop, stop
  end
  if p.checked then
    p.content = p.finish
    p.finish = math.min(math.max(p.finish + CHECKSUM, at + LEAST_CHECKED), stop)
  end
  return p
end

-- identified tells whether both ends have an id, as they have but where one asks who is there, and
-- is answered.
local function identified(p)
  if p.seal == "handshake" then
    return p.index % 2 == 0 and p.src ~= 0 or p.index % 2 == 1 and p.dst ~= 0
  elseif p.seal then
    return p.dst ~= 0 and p.src ~= 0 or (p.dst ~= 0 or p.src ~= 0) and p.counter < FEW_SEALED
  end
  if p.dst ~= 0 and p.src ~= 0 then
    return true
  end
  local index = p.hello and p.msgs[1].index
  return p.src ~= 0 and index == HELLO or p.dst ~= 0 and (index == REFUSED or index == WELCOME)
end

-- plausible tells frames from other datagrams by what no known sender does.
local function plausible(tvb, at, p)
  if not p.dst or (p.flags > 3 and not p.seal and not p.session) or p.bad or not identified(p) then
    return false
  end
  local prefix = tvb(at, PREFIX):le_uint()
  if prefix ~= 0 and prefix ~= p.dst then
    return false
  end
  if p.seal then
    return p.seal == "sealed" or p.counter == 0
  end
  for _, m in ipairs(p.msgs) do
    if m.type > 3 or (not p.session and m.index > m.count and m.count ~= 0) then
      return false
    end
  end
  if p.session then -- nothing is padded
    return p.kind and (p.stop == LONGEST or (p.known and p.finish == p.stop) or (not p.known and p.cut and p.finish <= p.stop)) and true or false
  end
  local length = p.stop - p.at
  return p.has_messages or (p.stop == LONGEST and p.count ~= 0) or (length == HEADER and p.count ~= 0)
end

-- segments cuts a datagram into pieces of that size, each a prefix and a frame
-- from and to the same endpoints. An endpoint may have several ids at one
-- address: then its peer's id is what all share, and nothing pads any of them.
-- Without a result, that is not what it is.
local function segments(tvb, size)
  local all, stop = {}, tvb:reported_len()
  local same_dst, same_src, padded = true, true, false
  for at = 0, stop - 1, size do
    local p = read_frame(tvb, at + PREFIX, math.min(at + size, stop))
    if not p.dst and not p.bad then
      break -- the capture ends here
    end
    -- OpenCPI's driver pads the last message, too.
    if p.bad or not plausible(tvb, at, p) or p.stop - p.finish > 7 then
      return nil
    end
    all[#all + 1] = p
    same_dst, same_src = same_dst and p.dst == all[1].dst, same_src and p.src == all[1].src
    padded = padded or p.finish < p.stop
  end
  local fits = (same_dst and same_src) or ((same_dst or same_src) and not padded)
  return fits and all
end

-- continues tells whether what begins at size may be the second datagram behind a sealed one.
local function continues(tvb, raw, size)
  if #raw - size < PREFIX + HEADER or not seal_of(raw:byte(size + PREFIX + FLAGS + 1)) then
    return false
  end
  local p = read_frame(tvb, size + PREFIX, math.min(2 * size, tvb:reported_len()))
  local one_dst, one_src = Struct.unpack("<I2I2", raw:sub(PREFIX + 1, PREFIX + 4))
  return p.seal and plausible(tvb, size, p) and (p.dst == one_dst or p.src == one_src)
end

-- next_sealed returns where the datagram behind a sealed one begins, by n bytes that both have at some place; 0: there is
-- none.
local function next_sealed(tvb, raw, at, n)
  local same, from = raw:sub(at + 1, at + n), PREFIX + LEAST_SEALED + at
  while #same == n do
    local i = raw:find(same, from + 1, true)
    if not i then
      return 0
    elseif continues(tvb, raw, i - 1 - at) then
      return i - 1 - at
    end
    from = i
  end
  return 0
end

-- sealed_size returns how long each datagram is, where the first one is sealed, or of a handshake. All of a batch have the
-- same salt, and all of a conversation the same prefix and ids. 0: it is one; nil: it is neither.
local function sealed_size(tvb, stop)
  local captured = math.min(tvb:captured_len(), stop)
  if captured < PREFIX + HEADER then
    return nil
  end
  local seal, index = seal_of(tvb(PREFIX + FLAGS, 1):uint())
  if not seal then
    return nil
  elseif seal == "handshake" then
    return PREFIX + SIZES[index]
  end
  local raw = tvb:raw(0, captured)
  local size = next_sealed(tvb, raw, PREFIX + FLAGS + 1, SALT)
  return size > 0 and size or next_sealed(tvb, raw, 0, PREFIX + COUNTER)
end

-- read_datagram returns the frames in a UDP datagram. On hosts that leave
-- segmentation to the network interface, a capture shows many as one. A fragment,
-- and what an ICMP error quotes, does not say where the datagram ended.
local function read_datagram(tvb, pinfo)
  if pinfo.fragmented or pinfo.in_error_pkt then
    return { read_frame(tvb, PREFIX, LONGEST) }
  end
  local stop = tvb:reported_len()
  local sealed = sealed_size(tvb, stop)
  if sealed then
    return sealed > 0 and sealed < stop and segments(tvb, sealed) or { read_frame(tvb, PREFIX, stop) }
  end
  local p = read_frame(tvb, PREFIX, stop)
  local size = p.finish
  if p.dst and not p.bad and size < stop then
    local padded = size + (PREFIX + HEADER - size) % 8
    return segments(tvb, size) or (size < padded and padded < stop and segments(tvb, padded)) or { p }
  end
  return { p }
end

---------------------------------------------------------------- remembering

-- A flow is what one endpoint sends to another one. Its ids are counted without
-- wrapping; ids holds the first copy of each. An entry is what is known of one
-- frame: for a first copy that is its record, else it has the record as rec.
local routes, entries, wrong

local function forget()
  routes, entries, wrong = {}, {}, {}
end
dgrdma.init = forget

-- widen returns the count that ends in id and is nearest to near.
local function widen(near, id, ahead)
  local d = (id - near) % 65536
  return near + (d <= ahead and d or d - 65536)
end

local function flow_of(pinfo, p)
  local from, to = tostring(pinfo.src) .. " " .. pinfo.src_port, tostring(pinfo.dst) .. " " .. pinfo.dst_port
  local route = from .. ">" .. to
  local between = routes[route]
  if not between then
    between = { flows = {}, back = to .. ">" .. from }
    routes[route] = between
  end
  local key = p.src * 65536 + p.dst
  local flow = between.flows[key]
  if not flow then
    flow = { src = p.src, dst = p.dst, ids = {}, txns = {}, hellos = {}, back = between.back }
    between.flows[key] = flow
    between.only = not between.several and flow
    between.several = true
  end
  return flow
end

-- mirror_of returns the flow in the other direction. OpenCPI's second driver
-- wants ids that do not mirror: then it is the only one between the addresses.
local function mirror_of(flow)
  local back = routes[flow.back]
  return back and (back.flows[flow.dst * 65536 + flow.src] or back.only)
end

-- join adds a message to its transaction. Who uses the id of a complete one
-- begins another.
local function join(flow, rec, m, pinfo)
  local t = flow.txns[m.txn]
  if t and (t.caddr ~= m.caddr or t.cval ~= m.cval or t.count ~= m.count) then
    rec.differs = t.frames[1]
    t = nil
  end
  if not t then
    t = {
      caddr = m.caddr, cval = m.cval, count = m.count, have = 0, waiting = 0, frames = {}, time = pinfo.rel_ts,
      completes = false, acked = false, acked_time = false,
    }
    flow.txns[m.txn] = t
  end
  t.have = t.have + 1
  if rec.txns[#rec.txns] ~= t then
    t.frames[#t.frames + 1] = pinfo.number
    t.waiting = t.waiting + 1
  end
  rec.txns[#rec.txns + 1] = t
  if t.have >= t.count then
    t.completes = pinfo.number
    flow.txns[m.txn] = nil
  end
end

-- settle notes that a frame is acknowledged, which was not so far, and with the last frame of a transaction that one.
local function settle(rec, e, pinfo)
  rec.acked, rec.acked_time = pinfo.number, pinfo.rel_ts
  e.acks = e.acks or {}
  e.acks[#e.acks + 1] = rec.frame
  local last
  for _, t in ipairs(rec.txns or {}) do
    if t ~= last then
      t.waiting = t.waiting - 1
      if t.waiting == 0 and t.completes then
        t.acked, t.acked_time = pinfo.number, pinfo.rel_ts
      end
      last = t
    end
  end
end

local function acknowledge(flow, p, e, pinfo)
  local mirror = mirror_of(flow)
  if not mirror then
    return
  end
  local start = widen(mirror.high, p.start, BEHIND)
  for id = start, start + p.count - 1 do
    local rec = mirror.ids[id]
    if rec and not rec.acked then
      settle(rec, e, pinfo)
    end
  end
  e.unsent = start + p.count - 1 > mirror.high
end

-- greet links frames of handshakes: one that is no HELLO answers the last one that came from the epoch that it names.
local function greet(flow, p, e, pinfo)
  local m = p.msgs[1]
  if m.index ~= REFUSED and m.index ~= REJECT then
    flow.hellos[m.txn] = e
  end
  e.number = pinfo.number
  local mirror = mirror_of(flow)
  local question = m.index ~= HELLO and mirror and mirror.hellos[m.addr]
  if question and not question.answered then
    e.answers, question.answered = question.number, pinfo.number
  end
end

-- content_of tells frames with one id apart, by what they have first.
local function content_of(p)
  local m = p.msgs[1]
  if m then
    return m.txn * 65536 + m.index, m.addr * 65536 + m.len
  end
  return p.start * 256 + p.count, p.finish - p.at
end

-- newer tells which of two transaction ids was taken later.
local function newer(txn, than)
  local d = (txn - than) % 4294967296
  return d > 0 and d < 2147483648
end

-- posted_again tells whether a frame is an old one as OpenCPI's first driver sends
-- it again once its request was posted again: with the header that the request has
-- by then, whose transaction has frames of its own. The first frames of another
-- life look alike, but their ids were acknowledged before.
local function posted_again(flow, old, p, place)
  local m = p.msgs[1]
  return old.txn and m and old.place == place and old.index == m.index and newer(m.txn, old.txn)
    and not newer(m.txn, flow.newest) and not (old.acked and p.seq <= 8 and m.txn <= 8)
end

-- remember returns the entry of a frame that is seen for the first time.
local function remember(p, pinfo)
  local flow = flow_of(pinfo, p)
  if p.hello then -- it has no id
    local e = { frame = pinfo.number, time = pinfo.rel_ts, data = false, acked = false, acked_time = false, txns = false }
    greet(flow, p, e, pinfo)
    return e
  end
  local high = flow.high
  local wide = high and widen(high, p.seq, 65535 - BEHIND) or 65536 + p.seq
  local content, place = content_of(p)
  local data = p.has_messages
  local m = data and p.msgs[1]
  local old = flow.ids[wide]
  local e
  local live = old and data and old.content ~= content and posted_again(flow, old, p, place)
  if live or (old and old.content == content and old.place == place) then
    old.copies = old.copies or { old.frame }
    table.insert(old.copies, pinfo.number)
    e = { rec = old, copy = #old.copies, needless = old.acked, live = live }
  else
    e = {
      frame = pinfo.number, time = pinfo.rel_ts, content = content, place = place, data = data,
      acked = false, acked_time = false, txns = false, txn = m and m.txn, index = m and m.index,
    }
    if high and (wide - high > BEHIND or (old and old.data and data)) then
      e.restart = true
      flow.ids, flow.txns = {}, {}
      high, flow.newest = nil, nil
    elseif high and wide > high + 1 then
      e.missing = wide - high - 1
    elseif high and wide < high and not old then
      e.late = true
    end
    -- Ids of frames without data may serve again, but not for data.
    if data or not old or not old.data then
      flow.ids[wide] = e
      flow.ids[wide - 65536] = nil
    end
    if data then
      e.txns = {}
      for _, each in ipairs(p.msgs) do
        join(flow, e, each, pinfo)
        if not flow.newest or newer(each.txn, flow.newest) then
          flow.newest = each.txn
        end
      end
    end
  end
  flow.high = math.max(high or wide, wide)
  if p.count ~= 0 then
    acknowledge(flow, p, e, pinfo)
  end
  return e
end

-- after tells whether an id of a session is later than another one.
local function after(id, than)
  local d = (id - than) % 4294967296
  return d > 0 and d < 2147483648
end

-- session_of returns the session of a flow with a tag.
local function session_of(flow, tag)
  flow.sessions = flow.sessions or {}
  local s = flow.sessions[tag]
  if not s then
    s = { ids = {}, txns = {}, high = nil, upto = nil }
    flow.sessions[tag] = s
  end
  return s
end

-- accept notes that a frame of a session is acknowledged.
local function accept(s, id, e, pinfo)
  local rec = s.ids[id]
  if rec and not rec.acked then
    settle(rec, e, pinfo)
  end
end

-- accept_all notes what a frame of a session acknowledges: of the latest session of the other direction. No window is larger than BEHIND, which bounds the work.
local function accept_all(flow, p, e, pinfo)
  local mirror = mirror_of(flow)
  local s = mirror and mirror.present
  if not s or not s.high then
    return
  end
  local budget = BEHIND
  local function from_to(first, last)
    if after(last, s.high) then
      last = s.high
    end
    local n = (last - first) % 4294967296 + 1
    if n > 2147483648 then
      return
    elseif n > budget then
      first, n = (last - budget + 1) % 4294967296, budget
    end
    budget = budget - n
    for i = 0, n - 1 do
      accept(s, (first + i) % 4294967296, e, pinfo)
    end
  end
  if not s.upto or after(p.upto, s.upto) then
    from_to(((s.upto or s.low - 1) + 1) % 4294967296, p.upto)
    if not after(p.upto, s.high) then
      s.upto = p.upto
    end
  end
  for _, r in ipairs(p.ranges or {}) do
    from_to(r.first, (r.first + r.count - 1) % 4294967296)
  end
end

-- remember_session returns the entry of a frame of a session that is seen for the first time. Its copy number tells what was sent again
-- from what the network doubled.
local function remember_session(p, pinfo)
  local flow = flow_of(pinfo, p)
  local e = { frame = pinfo.number, time = pinfo.rel_ts, data = true, acked = false, acked_time = false, txns = {} }
  if p.control == RESET then
    local mirror = mirror_of(flow)
    local s = mirror and mirror.sessions and mirror.sessions[p.tag]
    local rec = s and s.ids[p.id]
    e.quoted = rec and (rec.copies and rec.copies[#rec.copies] or rec.frame)
    return e
  end
  local s = session_of(flow, p.tag)
  flow.present = s
  if p.numbered then
    local old = s.ids[p.id]
    if old then
      old.copies = old.copies or { old.frame }
      table.insert(old.copies, pinfo.number)
      e = { rec = old, copy = #old.copies, needless = old.acked, network = old.came[p.copies] and p.copies < MOST_COPIES }
      old.came[p.copies] = true
    else
      s.ids[p.id], e.came = e, { [p.copies] = true }
      if s.high and after(p.id, s.high + 1) then
        e.missing = (p.id - s.high) % 4294967296 - 1
      elseif s.high and after(s.high, p.id) then
        e.late = true
      end
      if not s.high or after(p.id, s.high) then
        s.high = p.id
      end
      if not s.low or after(s.low, p.id) then
        s.low = p.id
      end
      for _, m in ipairs(p.msgs) do
        join(s, e, m, pinfo)
      end
    end
  end
  accept_all(flow, p, e, pinfo)
  return e
end

-- entry_of returns what is known of a frame; nil if it says too little. Frames
-- that an ICMP error quotes were not sent here.
local function entry_of(tvb, p, pinfo)
  local key = pinfo.number * 262144 + tvb:offset() + p.at
  local e = entries[key]
  if p.checksum and not pinfo.visited and dgrdma.prefs.checksums then
    wrong[key] = crc32c(tvb:raw(p.at, p.checksum - p.at)) ~= tvb(p.checksum, CHECKSUM):le_uint()
  end
  p.wrong = wrong[key]
  if not e and not p.wrong and not pinfo.visited and p.dst and not p.bad and not p.seal and not pinfo.in_error_pkt then
    if not p.session then
      e = remember(p, pinfo)
    elseif p.kind then
      e = remember_session(p, pinfo)
    end
    entries[key] = e
  end
  return e
end

---------------------------------------------------------------- showing

local function message_text(m)
  if m.len ~= 0 and m.type == 0 and m.caddr ~= ONES then -- nearly always
    return format("txn %d %d/%d %d bytes at 0x%x then 0x%x at 0x%x", m.txn, m.index, m.count, m.len, m.addr, m.cval, m.caddr)
  end
  local s = format("txn %d %d/%d", m.txn, m.index, m.count)
  if m.len ~= 0 then
    s = s .. format(" %d bytes at 0x%x", m.len, m.addr)
  end
  if m.caddr ~= ONES or m.cval ~= ONES then
    s = s .. format(" then 0x%x at 0x%x", m.cval, m.caddr)
  end
  if m.type ~= 0 then
    s = s .. format(" type %d", m.type)
  end
  return s
end

local function services_text(services, knows)
  local known = knows > 0 and format(" (knows %d)", knows) or ""
  if #services == 0 then
    return ", no service" .. known
  end
  local names = {}
  for i, s in ipairs(services) do
    names[i] = s.name
  end
  return ", serves " .. table.concat(names, ", ") .. known
end

local function identity_text(r)
  return format(", endpoint %d", r.id) .. (r.size > 0 and format(" with %.0f bytes", r.size) or "")
end

local function hello_text(p)
  local m = p.msgs[1]
  local s = hellos[m.index]
  local r = p.refusal
  if m.index == REFUSED then
    s = s .. format(" to epoch %d", m.addr)
    return r and s .. ": " .. refusals[r.why] .. identity_text(r) or s
  end
  s = s .. format(" from epoch %d", m.txn)
  if m.addr ~= 0 then
    s = s .. format(" to epoch %d", m.addr)
  elseif p.dst == 0 then
    s = s .. ", asks who is there"
  end
  s = p.services and s .. services_text(p.services, p.knows) or s
  return r and s .. identity_text(r) or s
end

local function seal_text(p)
  if p.seal == "sealed" then
    return format("sealed %.0f key %d", p.counter, p.index) .. (p.inside and format(" [%d bytes]", p.inside) or "")
  elseif p.unasked then
    return "handshake challenge [of who does not know the key]"
  end
  local s = "handshake " .. steps[p.index]
  return p.nonce and s .. format(" [nonce %s]", p.nonce) or s
end

local LINE_RANGES = 8 -- in one line

-- control_text says what a control frame of a session does.
local function control_text(p)
  if p.control == ACK then
    local s = p.echo > 0 and format("copy %d, ", p.echo) or ""
    s = s .. (p.again and "had come before, " or "") .. format("%d µs ago", p.delay) .. (p.delay == LONGEST_DELAY and " or more" or "")
    if p.marks then
      s = s .. format(", came %.0f ECT(0) and %.0f CE", p.marks.ect0, p.marks.ce)
    end
    for i, r in ipairs(p.ranges) do
      if i > LINE_RANGES then
        s = s .. format(" and %d more", #p.ranges - LINE_RANGES)
        break
      end
      s = s .. (i == 1 and ", also " or " ") .. format("%.0f+%d", r.first, r.count)
    end
    return s
  elseif p.control == BYE then
    return format("reason %d, epoch %.0f to epoch %.0f", p.reason, p.sender, p.receiver)
  end
  return format("%d bytes", p.probe)
end

-- session_text says what the header of a frame of a session has.
local function session_text(p)
  if not p.kind then
    return format("%d->%d flags 0x%x", p.src, p.dst, p.flags)
  end
  local s = format("%d->%d %s", p.src, p.dst, p.kind)
  if p.numbered then
    s = s .. format(" id %.0f", p.id)
  elseif p.control == ACK or p.control == RESET then
    s = s .. format(" of id %.0f", p.id)
  end
  if p.copies > 0 then
    s = s .. format(" copy %d", p.copies)
  end
  s = s .. format(" up to %.0f tag 0x%x", p.upto, p.tag) .. (p.checked and " checksum" or "")
  local said = not p.bad and (p.ranges or p.reason or p.probe)
  return said and s .. " [" .. control_text(p) .. "]" or s
end

local MOST_MESSAGES = 3 -- in one line

local function frame_text(p)
  if not p.dst then
    return p.bad and "bad frame: " .. p.bad or "frame header not captured"
  end
  if p.seal then
    return format("%d->%d %s%s", p.src, p.dst, seal_text(p), p.cut and " (cut)" or "")
  end
  local s = p.session and session_text(p) or format("%d->%d", p.src, p.dst) .. (p.hello and "" or format(" id %d", p.seq))
  if p.count ~= 0 then
    s = s .. format(" ack %d+%d", p.start, p.count)
  end
  if p.flags > 3 and not p.session then
    s = s .. format(" flags 0x%02x", p.flags - p.flags % 4)
  elseif p.checked and not p.session then
    s = s .. " checksum"
  end
  if p.hello then
    s = s .. " [" .. hello_text(p) .. "]"
  else
    for i = 1, math.min(#p.msgs, MOST_MESSAGES) do
      s = s .. " [" .. message_text(p.msgs[i]) .. "]"
    end
    if #p.msgs > MOST_MESSAGES then
      s = s .. format(" and %d more", #p.msgs - MOST_MESSAGES)
    end
  end
  if p.wrong then
    s = s .. " checksum wrong"
  end
  if p.bad then
    return s .. " (malformed)"
  end
  return p.cut and s .. " (cut)" or s
end

local function info_text(p, e)
  local mark = ""
  if e and e.copy then
    mark = format(e.rec.data and not e.network and "[Retransmission of %d] " or "[Duplicate of %d] ", e.rec.frame)
  elseif e and e.restart then
    mark = "[Ids began anew] "
  elseif e and e.missing then
    mark = format("[%d missing before] ", e.missing)
  elseif e and e.late then
    mark = "[Out of order] "
  end
  return mark .. frame_text(p)
end

local function find(all, field, text)
  all[#all + 1] = { field, text }
end

-- findings lists what deserves a look, as expert field and text. The texts are
-- few: Wireshark's list of expert information is grouped by them.
local function findings(p, e)
  local all = {}
  if p.bad then
    find(all, x.malformed, "Malformed: " .. p.bad)
  elseif p.cut then
    find(all, x.cut, "Not all of the frame was captured")
  end
  if not p.dst then
    return all
  end
  if not identified(p) then
    find(all, x.ids, "Endpoint id 0 names nobody")
  end
  if p.unasked then
    find(all, x.unknown, "Answers a sealed frame under a key that its sender does not know")
  end
  if p.wrong then
    find(all, x.checksum, "Wrong checksum: the frame was changed on the way, and the wire's own checksum is right")
  end
  if p.flags > 3 and not p.seal and not p.session then
    find(all, x.flags, "Reserved flags are set")
  end
  if p.control == RESET then
    find(all, x.reset, "RESET: the session of the frame that it answers is none that its sender has")
  end
  for _, m in ipairs(p.hello and {} or p.msgs) do
    if m.type > 3 then
      find(all, x.type, "A type that nobody sends")
    end
    if not p.session and m.count ~= 0 and (m.index == 0 or m.index > m.count) then
      find(all, x.index, m.index == 0 and "Index 0" or "Index above the count")
    end
    if m.count == 0 and m.len ~= 0 and not (p.session and m.type == 2) then -- a list of services
      find(all, x.count, "Data under count 0, which some receivers ignore")
    elseif m.count ~= 0 and m.len == 0 then
      find(all, x.empty, "No data in a data message: OpenCPI's hardware abandons such a frame")
    end
    if m.addr + m.len > ONES + 1 then
      find(all, x.beyond, "Data beyond the 32-bit address space")
    end
    if m.caddr % 4 ~= 0 and (m.caddr ~= ONES or m.cval ~= ONES) then
      find(all, x.aligned, "Completion address is not a multiple of 4")
    end
  end
  if not e then
    return all
  end
  if e.differs then
    find(all, x.differ, "Differs from an earlier message in the fields of the transaction")
  end
  if e.copy and e.network then
    find(all, x.duplicate, "Doubled by the network: it has the copy number of an earlier one")
  elseif e.copy and e.rec.data then
    find(all, x.again, "Retransmission")
  elseif e.copy then
    find(all, x.duplicate, "Duplicate of a frame without data")
  end
  if e.live then
    find(all, x.live, "Has the transaction id of a later frame: OpenCPI's first driver sends again what a request says by then")
  end
  if e.needless then
    find(all, x.duplicate, "Acknowledged already")
  end
  if e.restart then
    find(all, x.restart, "The sender's ids began anew, or much is missing")
  end
  if e.missing then
    find(all, x.gap, "Ids before this one are missing: lost before the capture, overtaken, or left out")
  end
  if e.late then
    find(all, x.late, "Overtaken by later ids")
  end
  if e.unsent then
    find(all, x.unsent, "Acknowledges ids ahead of those captured")
  end
  return all
end

local function generated(tree, field, value)
  if value then
    tree:add(field, value):set_generated()
  end
end

local function seconds(from, to)
  local s = math.floor(to - from)
  return NSTime.new(s, math.floor((to - from - s) * 1e9 + 0.5))
end

local MOST_FRAMES = 1024 -- of a transaction that are listed

local function show_transaction(tree, t, number)
  local first, last = t.frames[1], t.completes
  generated(tree, f.begins, first)
  generated(tree, f.completes, last)
  generated(tree, f.txn_acked, t.acked)
  if t.acked then
    generated(tree, f.txn_time, seconds(t.time, t.acked_time))
  end
  if number == first or number == last then
    for i = 1, math.min(#t.frames, MOST_FRAMES) do
      generated(tree, f.txn_frame, t.frames[i])
    end
  end
end

local function show_message(tvb, tree, p, m, i, t, number)
  local whole = m.at + MESSAGE + m.len
  local stop = math.min(whole, p.captured)
  local node = tree:add(f.msg, tvb(m.at, stop - m.at))
  node:set_text(format("Message %d: %s", i, p.hello and hellos[m.index] or message_text(m)))
  node:add_le(f.txn, tvb(m.at, 4))
  node:add_le(f.caddr, tvb(m.at + 4, 4))
  node:add_le(f.cval, tvb(m.at + 8, 4))
  if m.caddr == ONES and m.cval == ONES then
    node:append_text(", no completion")
  end
  node:add_le(f.count, tvb(m.at + 12, 2))
  node:add_le(f.index, tvb(m.at + 14, 2))
  node:add_le(f.addr, tvb(m.at + 16, 4))
  node:add_le(f.len, tvb(m.at + 20, 2))
  node:add(f.type, tvb(m.at + 22, 1))
  node:add(f.more, tvb(m.at + 23, 1))
  if stop > m.at + MESSAGE then
    node:add(f.data, tvb(m.at + MESSAGE, stop - m.at - MESSAGE))
  end
  local pad = math.min(m.pad, p.captured - whole)
  if pad > 0 then
    node:add(f.msg_padding, tvb(whole, pad))
  end
  if t then
    show_transaction(node, t, number)
  end
end

local function show_services(tvb, tree, p)
  local list = tree:add(f.services, tvb(p.list, SERVICES), #p.services)
  for _, s in ipairs(p.services) do
    local node = list:add(f.service, tvb(s.at, SERVICE))
    local first = tvb(s.at + NAME, 4)
    node:set_text(format("Service %s from 0x%x", s.name, first:le_uint()))
    node:add(f.service_name, tvb(s.at, NAME), s.name)
    node:add_le(f.service_base, first)
  end
  tree:add(f.knows, tvb(p.list + 2, 1))
end

local function show_hello(tvb, tree, p, e)
  local m = p.msgs[1]
  local node = tree:add_le(f.hello, tvb(m.at + 14, 2))
  node:add_le(f.bye_sender, tvb(m.at, 4))
  node:add_le(f.bye_receiver, tvb(m.at + 16, 4))
  node:add(f.check, tvb(p.at + 4, 4), p.start * 65536 + p.seq)
  if p.services then
    show_services(tvb, node, p)
  end
  local r = p.refusal
  if r then
    if m.index == REFUSED then
      node:add(f.refusal_why, tvb(r.at + 1, 1))
    end
    node:add_le(f.refusal_id, tvb(r.at + 2, 2))
    node:add(f.refusal_size, tvb(r.at + 4, 8), UInt64.new(r.size % 4294967296, math.floor(r.size / 4294967296)))
  end
  if e then
    generated(node, f.hello_answers, e.answers)
    generated(node, f.hello_answered, e.answered)
  end
end

local function show_header(tvb, tree, p)
  local at = p.at
  tree:add_le(f.dst, tvb(at, 2))
  tree:add_le(f.src, tvb(at + 2, 2))
  local seq = tree:add_le(f.seq, tvb(at + 4, 2))
  local start = tree:add_le(f.ack_start, tvb(at + 6, 2))
  if p.hello then
    seq:append_text(" (lower half of the check)")
    start:append_text(" (upper half of the check)")
  elseif p.count == 0 then
    start:append_text(" (none)")
  end
  tree:add(f.ack_count, tvb(at + 8, 1))
  if p.count ~= 0 then
    generated(tree, f.ack_last, (p.start + p.count - 1) % 65536)
  end
  local flags = tree:add(f.flags, tvb(at + 9, 1))
  flags:add(f.flags_reserved, tvb(at + 9, 1))
  flags:add(f.flags_checksum, tvb(at + 9, 1))
  flags:add(f.flags_messages, tvb(at + 9, 1))
end

-- rest returns what there is between two places of what was captured, if there is anything.
local function rest(tvb, p, from, to)
  from, to = math.min(from, p.captured), math.min(to, p.captured)
  return to > from and tvb(from, to - from)
end

local function show_bytes(tree, field, range)
  if range then
    tree:add(field, range)
  end
end

local function show_sealed(tvb, tree, p)
  local at = p.at
  tree:add_le(f.dst, tvb(at, 2))
  tree:add_le(f.src, tvb(at + 2, 2))
  local flags = tree:add(f.flags, tvb(at + FLAGS, 1))
  flags:add(f.flags_sealed, tvb(at + FLAGS, 1))
  flags:add(f.flags_handshake, tvb(at + FLAGS, 1))
  local body = at + FLAGS + 1
  if p.seal == "sealed" then
    local node = tree:add(f.sealed, rest(tvb, p, at, p.stop))
    node:add(f.counter, tvb(at + COUNTER, 5), UInt64.new(p.counter % 4294967296, math.floor(p.counter / 4294967296)))
    node:add(f.key, tvb(at + FLAGS, 1))
    show_bytes(node, f.salt, rest(tvb, p, body, body + SALT))
    if p.inside then
      generated(node, f.inside, p.inside)
      show_bytes(node, f.sealed_data, rest(tvb, p, body + SALT, p.stop - TAG))
      show_bytes(node, f.tag, rest(tvb, p, p.stop - TAG, p.stop))
    end
    return
  end
  local node = tree:add(f.handshake, tvb(at + FLAGS, 1))
  show_bytes(node, f.nonce, rest(tvb, p, body, body + NONCE))
  if p.unasked then
    generated(node, f.unasked, true)
  end
  body = body + NONCE
  show_bytes(node, p.index == 0 and f.padding or f.challenge, rest(tvb, p, body, body + CHALLENGE))
  body = body + CHALLENGE
  show_bytes(node, f.mac, rest(tvb, p, body, body + MAC))
  body = body + MAC
  if p.index >= 2 then
    show_bytes(node, f.noise, rest(tvb, p, body, body + NOISE))
  end
end

local function show_session(tvb, tree, p, e)
  local at = p.at
  tree:add_le(f.dst, tvb(at, 2))
  tree:add_le(f.src, tvb(at + 2, 2))
  local flags = tree:add(f.flags, tvb(at + FLAGS, 1))
  for _, each in ipairs({ f.flags_control, f.flags_copy, f.flags_session, f.flags_checksum }) do
    flags:add(each, tvb(at + FLAGS, 1))
  end
  if not p.kind then
    return
  end
  local id, tag, upto = tvb(at + 4, 4), tvb(at + 10, 4), tvb(at + 14, 4)
  tree:add_le(f.session_tag, tag)
  if p.control > 0 then
    tree:add(f.control, tvb(at + SESSION, 1))
  end
  if p.control == RESET then
    tree:add_le(f.quoted_id, id)
    tree:add(f.quoted_copy, tvb(at + FLAGS, 1), p.copies)
    tree:add_le(f.quoted_ack, upto)
    generated(tree, f.quoted_in, e and e.quoted)
    return
  end
  if p.numbered then
    tree:add_le(f.session_id, id)
    tree:add(f.session_copy, tvb(at + FLAGS, 1), p.copies)
  end
  tree:add_le(f.session_ack, upto)
  local body = at + SESSION + 1
  if p.bad then
    return
  elseif p.ranges then
    tree:add_le(f.echo, id)
    tree:add(f.echo_copy, tvb(body, 1))
    tree:add(f.echo_again, tvb(body, 1))
    tree:add_le(f.echo_delay, tvb(body + 1, 2))
    for _, r in ipairs(p.ranges) do
      local node = tree:add(f.range, tvb(r.at, RANGE))
      node:set_text(format("Range: %d from %.0f", r.count, r.first))
      node:add(f.range_first, tvb(r.at, 2), r.first)
      node:add_le(f.range_count, tvb(r.at + 2, 2))
    end
    if p.marks then
      tree:add_le(f.marks_ect0, tvb(p.marks.at, 4))
      tree:add_le(f.marks_ce, tvb(p.marks.at + 4, 4))
    end
  elseif p.reason then
    tree:add(f.bye_reason, tvb(body, 1))
    tree:add_le(f.bye_sender, tvb(body + 1, 4))
    tree:add_le(f.bye_receiver, tvb(body + 5, 4))
  elseif p.probe then
    tree:add_le(f.probe, tvb(body + 1, 2))
  end
end

local function show_analysis(tree, e)
  local rec = e.rec or e
  if e.copy then
    generated(tree, rec.data and not e.network and f.first or f.repeated, rec.frame)
    generated(tree, f.copy, e.copy)
    generated(tree, f.previous, rec.copies[e.copy - 1])
  end
  generated(tree, f.next, rec.copies and rec.copies[(e.copy or 1) + 1])
  generated(tree, f.missing, e.missing)
  generated(tree, f.differs, e.differs)
  generated(tree, f.acked_in, rec.acked)
  if rec.acked then
    generated(tree, f.ack_time, seconds(rec.time, rec.acked_time))
  end
  for _, frame in ipairs(e.acks or {}) do
    generated(tree, f.acks, frame)
  end
end

local function any_referenced(tree, fields)
  for _, field in ipairs(fields) do
    if tree:referenced(field) then
      return true
    end
  end
  return false
end

local function show_messages(tvb, tree, p, e, number)
  local rec = e and (e.rec or e)
  local last
  for i, m in ipairs(p.msgs) do
    local t = rec and rec.txns and rec.txns[i]
    show_message(tvb, tree, p, m, i, t ~= last and t, number)
    last = t
  end
end

local function show_frame(tvb, tree, p, e, number)
  if not p.dst then
    return
  end
  if p.seal then
    show_sealed(tvb, tree, p)
    return
  end
  if p.session then
    show_session(tvb, tree, p, e)
  else
    show_header(tvb, tree, p)
  end
  if e then
    show_analysis(tree, e)
  end
  generated(tree, f.messages, #p.msgs)
  if p.hello then
    show_hello(tvb, tree, p, e)
  end
  if any_referenced(tree, of_messages) then
    show_messages(tvb, tree, p, e, number)
  end
  local finish, stop = p.finish, p.captured
  if p.checksum then
    finish, stop = p.content, p.checksum
    tree:add_le(f.checksum, tvb(p.checksum, CHECKSUM))
    if p.wrong ~= nil then
      tree:add(f.checksum_right, tvb(p.checksum, CHECKSUM), not p.wrong):set_generated()
    end
  end
  if finish < stop then
    tree:add(f.padding, tvb(finish, stop - finish))
  end
end

-- show adds a frame to the tree. prefix is where the bytes before it are.
local function show(tvb, pinfo, tree, p, e, prefix)
  local found = findings(p, e)
  local wanted = tree:referenced(Dissector.get("dgrdma"))
  if not wanted and #found == 0 then
    return
  end
  local from = prefix or p.at
  local stop = math.min(p.stop, p.captured)
  local node
  if stop > from then
    node = tree:add(dgrdma, tvb(from, stop - from))
  else
    node = tree:add(dgrdma)
  end
  node:append_text(", " .. frame_text(p))
  if wanted then
    if prefix and stop > from then
      node:add(f.prefix, tvb(prefix, math.min(PREFIX, stop - from)))
    end
    show_frame(tvb, node, p, e, pinfo.number)
  end
  for _, found_one in ipairs(found) do
    node:add_proto_expert_info(found_one[1], found_one[2])
  end
end

---------------------------------------------------------------- dissectors

-- span_text says which ids frames have, if the same endpoints count them.
local function span_text(frames)
  local first, last = frames[1], frames[#frames]
  for _, p in ipairs(frames) do
    if p.dst ~= first.dst or p.src ~= first.src then
      return "several endpoints"
    end
  end
  if first.seal == "sealed" and last.seal == "sealed" then
    return format("counters %.0f..%.0f", first.counter, last.counter)
  elseif first.seal or last.seal then
    return "a handshake among them"
  end
  if not first.seq or not last.seq then
    return first.numbered and last.numbered and format("ids %.0f..%.0f", first.id, last.id) or "of a session"
  end
  return format("ids %d..%d", first.seq, last.seq)
end

local function show_all(tvb, pinfo, tree, frames, prefixed)
  pinfo.cols.protocol = "DG/RDMA"
  local repeats, text = 0, nil
  for _, p in ipairs(frames) do
    local e = entry_of(tvb, p, pinfo)
    show(tvb, pinfo, tree, p, e, prefixed and p.at - PREFIX)
    repeats = repeats + (e and e.copy and 1 or 0)
    text = text or info_text(p, e)
  end
  if #frames > 1 then
    local of_them = repeats > 0 and format(", %d of them again", repeats) or ""
    text = format("%d frames%s, %s: %s", #frames, of_them, span_text(frames), text)
  end
  pinfo.cols.info = text
  return tvb:captured_len()
end

function dgrdma.dissector(tvb, pinfo, tree)
  return show_all(tvb, pinfo, tree, { read_frame(tvb, 0, tvb:reported_len()) })
end

function in_udp.dissector(tvb, pinfo, tree)
  return show_all(tvb, pinfo, tree, read_datagram(tvb, pinfo), true)
end

dgrdma:register_heuristic("udp", function(tvb, pinfo, tree)
  if tvb:captured_len() < PREFIX + HEADER then
    return false
  end
  local frames = read_datagram(tvb, pinfo)
  if not plausible(tvb, 0, frames[1]) then
    return false
  end
  show_all(tvb, pinfo, tree, frames, true)
  return true
end)

---------------------------------------------------------------- preferences

local ethertypes, ports = DissectorTable.get("ethertype"), DissectorTable.get("udp.port")
local ethertype, port_range

dgrdma.prefs.ethertype = Pref.string("Ethernet type", "0xf042", "The Ethernet type of DG/RDMA: OpenCPI's is 0xf042")
dgrdma.prefs.ports = Pref.range("UDP ports", "", "Ports whose datagrams are DG/RDMA whatever they look like", 65535)

dgrdma.prefs.checksums = Pref.bool("Verify checksums", true, "Whether the checksum of a frame that says that it has one is right. It takes time")

local function register()
  local wanted = tonumber(dgrdma.prefs.ethertype)
  if wanted and wanted >= 0x600 and wanted <= 0xffff and wanted ~= ethertype then
    if ethertype then
      ethertypes:remove(ethertype, dgrdma)
    end
    ethertypes:add(wanted, dgrdma)
    ethertype = wanted
  end
  local range = dgrdma.prefs.ports
  if range ~= port_range then
    if port_range then
      ports:remove(port_range, in_udp)
    end
    port_range = nil
    if range ~= "" then
      ports:add(range, in_udp)
      port_range = range
    end
  end
end
dgrdma.prefs_changed = register

register()

forget()
ports:add_for_decode_as(in_udp)

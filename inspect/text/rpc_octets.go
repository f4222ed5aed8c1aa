package text

import (
	"strconv"

	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
)

// octetDumps appends the octets of a Send, and with a Reply those of a whole Call or Reply that chunks moved.
func octetDumps(b []byte, m *rpcrdma.Message) []byte {
	b = octetDump(b, "the Send", m.Octets, m.Length)
	if c := m.Call; c != nil && m.Kind == rpcrdma.ReplyKind {
		call, reply := c.Moved()
		if len(call) > 0 {
			b = octetDump(b, "the Call, as RDMA Reads moved it", call, max(c.Fetched, uint64(len(call))))
		}
		if len(reply) > 0 {
			b = octetDump(b, "the Reply, as RDMA Writes moved it", reply, max(c.Placed, uint64(len(reply))))
		}
	}
	return b
}

func octetDump(b []byte, what string, octets []byte, length uint64) []byte {
	b = append(append(b, "  "...), what...)
	if uint64(len(octets)) < length {
		b = append(number(b, ", the first ", len(octets)), " of "...)
	} else {
		b = append(b, ", "...)
	}
	b = strconv.AppendUint(b, length, 10)
	return dumpAt(append(b, " bytes:\n"...), octets, 0, 4)
}

// octetsJSON appends the same as keys.
func octetsJSON(b []byte, m *rpcrdma.Message) []byte {
	b = append(hexBytes(append(b, `,"data":"`...), m.Octets), '"')
	if c := m.Call; c != nil && m.Kind == rpcrdma.ReplyKind {
		call, reply := c.Moved()
		if len(call) > 0 {
			b = append(hexBytes(append(b, `,"call_data":"`...), call), '"')
		}
		if len(reply) > 0 {
			b = append(hexBytes(append(b, `,"reply_data":"`...), reply), '"')
		}
	}
	return b
}

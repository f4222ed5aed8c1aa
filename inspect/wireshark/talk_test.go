package wireshark_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/verbs"
)

// told is a message that somebody has sent: fields that all its frames have, and how much it carried.
type told struct {
	what   string
	fields map[string]string
	once   map[string]string // of its only frame
	n      int               // payload, in DDP's sense
}

// talk is a connection, and what was said there in either direction, as the calls of both programs have it.
type talk struct {
	t      *testing.T
	qp     [2]*verbs.QueuePair
	key    [2]verbs.Key // of the memory of each
	sends  [2]int       // MSNs last used on queues 0, 1 and 3
	asks   [2]int
	replys [2]int
	told   [2][]told
	crc    bool
}

func opcode(n int) string { return fmt.Sprintf("0x%02x", n&15) }

func tagged(op int, stag uint32, to uint64) map[string]string {
	return map[string]string{"iwarp_ddp.tagged_flag": "1", "iwarp_rdma.opcode": opcode(op), "iwarp_ddp.stag": fmt.Sprintf("0x%08x", stag),
		"iwarp_ddp.tagged_offset": fmt.Sprintf("0x%016x", to)}
}

func untagged(op, qn, msn int) map[string]string {
	return map[string]string{"iwarp_ddp.tagged_flag": "0", "iwarp_rdma.opcode": opcode(op), "iwarp_ddp.qn": strconv.Itoa(qn), "iwarp_ddp.msn": strconv.Itoa(msn)}
}

func (k *talk) say(side int, what string, n int, fields, once map[string]string) {
	k.told[side] = append(k.told[side], told{what, fields, once, n})
}

// send is any message of queue 0.
func (k *talk) send(side, op, n int, invalidate string) {
	k.sends[side]++
	f := untagged(op, 0, k.sends[side])
	if invalidate != "" {
		f["iwarp_rdma.inval_stag"] = invalidate
	}
	k.say(side, fmt.Sprintf("a message of queue 0 with opcode %d", op), n, f, nil)
}

// ask is a request, and answer what comes back on queue 3.
func (k *talk) ask(side int, what string, op, n int, once map[string]string) {
	k.asks[side]++
	k.say(side, what, n, untagged(op, 1, k.asks[side]), once)
}

func (k *talk) answer(side int, what string, op, n int, once map[string]string) {
	k.replys[side]++
	k.say(side, what, n, untagged(op, 3, k.replys[side]), once)
}

// do fails the test if a call did.
func (k *talk) do(what string, err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatalf("%s: %v", what, err)
	}
}

func quad(n uint64) string { return fmt.Sprintf("0x%016x", n) }

// read is a Read of n octets. What the answer names is what the request did, whatever that was.
func (k *talk) read(side, n int) {
	at := uint32(100)
	k.do("Read", k.qp[side].Read(k.t.Context(), make([]byte, n), k.key[1-side], at))
	key := k.key[1-side]
	k.ask(side, "Read Request", 1, 28, map[string]string{"iwarp_rdma.rdmardsz": strconv.Itoa(n), "iwarp_rdma.srcstag": fmt.Sprintf("0x%08x", key.STag),
		"iwarp_rdma.srcto": quad(key.Offset + uint64(at))})
	k.say(1-side, "Read Response", n, map[string]string{"iwarp_ddp.tagged_flag": "1", "iwarp_rdma.opcode": opcode(2)}, nil)
}

// everything has a side do whatever can be done.
func (k *talk) everything(side int, extended bool) {
	ctx, q, key := k.t.Context(), k.qp[side], k.key[1-side]
	for _, n := range []int{0, 1, 2, 3, 4, 5, 1500, 200_000} {
		at := uint32(7 + n%3)
		k.do("Write", q.Write(ctx, key, at, make([]byte, n)))
		k.say(side, "Write", n, tagged(0, key.STag, key.Offset+uint64(at)), nil)
		k.read(side, n)
		k.do("Send", q.Send(ctx, make([]byte, n)))
		k.send(side, 3, n, "")
	}
	post := func(w verbs.Work) {
		k.t.Helper()
		k.do("posting", q.Post(&w))
		var done [1]verbs.Completion
		if n, err := q.Completions().Wait(ctx, done[:]); n != 1 || err != nil || done[0].Err != nil {
			k.t.Fatalf("%v: %d, %v, %v", w.Op, n, err, done[0].Err)
		}
	}
	post(verbs.Work{Op: verbs.OpSend, Solicited: true, Data: make([]byte, 77)})
	k.send(side, 5, 77, "")
	if extended {
		k.extended(side, post)
	}
	k.read(side, 10) // when it is answered, the peer has heard everything
}

func (k *talk) extended(side int, post func(verbs.Work)) {
	ctx, q, key := k.t.Context(), k.qp[side], k.key[1-side]
	for solicited, op := range map[bool]int{false: 8, true: 9} {
		post(verbs.Work{Op: verbs.OpImmediate, Solicited: solicited, Payload: [8]byte{1, 2, 3}})
		k.send(side, op, 8, "")
	}
	word := func(m map[string]string) map[string]string {
		m["iwarp_rdma.atomic.request_identifier"] = fmt.Sprintf("0x%08x", k.asks[side]+1)
		m["iwarp_rdma.atomic.remote_stag"] = fmt.Sprintf("0x%08x", key.STag)
		m["iwarp_rdma.atomic.remote_tagged_offset"] = quad(key.Offset + 8)
		return m
	}
	found := func(old uint64) map[string]string {
		return map[string]string{"iwarp_rdma.atomic.original_request_identifier": fmt.Sprintf("0x%08x", k.asks[side]),
			"iwarp_rdma.atomic.original_remote_data_value": quad(old)}
	}
	old, err := q.FetchAdd(ctx, key, 8, 0x1122334455667788)
	k.do("FetchAdd", err)
	k.ask(side, "FetchAdd", 10, 52, word(map[string]string{"iwarp_rdma.atomic.opcode": "0x00000000", "iwarp_rdma.atomic.add_data": "0x1122334455667788", "iwarp_rdma.atomic.add_mask": quad(0)}))
	k.answer(1-side, "Atomic Response", 11, 12, found(old))
	old, err = q.CompareSwap(ctx, key, 8, 0x1122334455667788, 5)
	k.do("CompareSwap", err)
	if old != 0x1122334455667788 {
		k.t.Errorf("CompareSwap found %#x", old)
	}
	k.ask(side, "CompareSwap", 10, 52, word(map[string]string{"iwarp_rdma.atomic.opcode": "0x00000002", "iwarp_rdma.atomic.swap_data": quad(5), "iwarp_rdma.atomic.swap_mask": quad(1<<64 - 1),
		"iwarp_rdma.atomic.compare_data": quad(0x1122334455667788), "iwarp_rdma.atomic.compare_mask": quad(1<<64 - 1)}))
	k.answer(1-side, "Atomic Response", 11, 12, found(old))
	// Those that follow have opcodes of which tshark knows at most the lower half.
	k.do("Flush", q.Flush(ctx, key, 0, 100, verbs.FlushGlobal))
	k.ask(side, "Flush", 12, 20, nil)
	k.answer(1-side, "Flush Response", 13, 0, nil)
	sum, err := q.Verify(ctx, key, 0, 100, nil)
	k.do("Verify", err)
	k.ask(side, "Verify", 14, 16, nil)
	k.answer(1-side, "Verify Response", 15, 32, nil)
	_, err = q.Verify(ctx, key, 0, 100, sum)
	k.do("Verify of a hash", err)
	k.ask(side, "Verify of a hash", 14, 16+32, nil)
	k.answer(1-side, "Verify Response", 15, 32, nil)
	k.do("AtomicWrite", q.AtomicWrite(ctx, key, 8, [8]byte{}))
	k.ask(side, "Atomic Write Request", 16, 24, nil)
	k.answer(1-side, "Atomic Write Response", 17, 0, nil)
}

// fault says that the other side of side has ended the connection, for a segment with that header and length. Of what follows the header,
// the size, STag and offset of a Read are named.
func (k *talk) fault(side int, f ddp.Fault, header string, segment int, read string) {
	var term *verbs.TerminateError
	for i, q := range k.qp {
		select {
		case <-q.Done():
		case <-time.After(time.Minute):
			k.t.Fatal("the connection does not end")
		}
		if err := q.Err(); !errors.As(err, &term) || term.Fault != f || term.Remote != (i == side) {
			k.t.Fatalf("the connection of side %d ended with %v, want %v", i, err, f)
		}
	}
	once := map[string]string{
		"iwarp_rdma.term_layer": fmt.Sprintf("0x%02x", f.Layer()), "iwarp_rdma.term_hdrct_m": "1", "iwarp_rdma.hdrct_d": "1", "iwarp_rdma.term_rsvd": "0x0000",
		"iwarp_rdma.hdrct_r": "0",
	}
	n := 4 + 2 + 18 // the control field, the length, an untagged header
	if header != "" {
		once["iwarp_rdma.term_ddp_seg_len"], once["iwarp_rdma.term_ddp_h"] = fmt.Sprintf("%04x", segment), header[:28] // tshark takes every header for a tagged one
		n = 4 + 2 + len(header)/2
	}
	if read != "" {
		once["iwarp_rdma.hdrct_r"], once["iwarp_rdma.term_rdma_h"] = "1", "*"+read
		n += 28
	}
	kind, code := fmt.Sprintf("0x%02x", f.Type()), fmt.Sprintf("0x%02x", f.Code())
	switch {
	case f.Layer() == ddp.LayerRDMAP:
		once["iwarp_rdma.term_etype_rdma"], once["iwarp_rdma.term_errcode_rdma"] = kind, code
	case f.Type() == 1:
		once["iwarp_rdma.term_etype_ddp"], once["iwarp_rdma.term_errcode_ddp_tagged"] = kind, code
	default:
		once["iwarp_rdma.term_etype_ddp"], once["iwarp_rdma.term_errcode_ddp_untagged"] = kind, code
	}
	k.say(1-side, "Terminate", n, untagged(7, 2, 1), once)
}

// hidden is a connection that the carrier does not know for TCP.
type hidden struct{ net.Conn }

// meet connects two hosts through a relay.
func meet(t *testing.T, r *relay, l *verbs.Listener, ha, hb *verbs.Host, wrap bool, oa, ob verbs.Options) *talk {
	t.Helper()
	k := &talk{t: t}
	for i, h := range []*verbs.Host{ha, hb} {
		g, err := h.Domain().Register(make([]byte, 1<<18), verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic|verbs.FlushGlobal|verbs.Verify,
			&verbs.RegionOptions{Algorithm: verbs.SHA256})
		k.do("registering", err)
		k.key[i] = g.Key()
		o := []*verbs.Options{&oa, &ob}[i]
		o.Private = k.key[i].Bytes()
		for range 30 {
			o.Posted = append(o.Posted, verbs.Receive{Data: make([]byte, 1<<18)})
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		request, err := l.Accept(ctx)
		if err == nil {
			k.qp[1], err = request.Accept(ctx, &ob)
		}
		accepted <- err
	}()
	nc, err := net.Dial("tcp", r.addr)
	k.do("dialing", err)
	if wrap {
		nc = hidden{nc}
	}
	k.qp[0], err = ha.Connect(ctx, nc, &oa)
	k.do("connecting", err)
	k.do("accepting", <-accepted)
	k.crc = k.qp[0].CRC()
	return k
}

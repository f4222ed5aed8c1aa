package mpa

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

func frameCRC(wire []byte) uint32 { return crc32.Checksum(wire[:len(wire)-CRCSize], castagnoli) }

// readAsked is the header of a Read Request.
type readAsked struct {
	sink, stag uint32
	sinkTO, to uint64
	size       uint32
}

func parseRead(b []byte) readAsked {
	if len(b) != 28 {
		return readAsked{}
	}
	n := binary.BigEndian
	return readAsked{sink: n.Uint32(b), sinkTO: n.Uint64(b[4:]), size: n.Uint32(b[12:]), stag: n.Uint32(b[16:]), to: n.Uint64(b[20:])}
}

func opcode(m *message) rdmap.Opcode { return rdmap.Opcode(m.first.Control & 15) }

func reads(list []message) (all []readAsked) {
	for i := range list {
		if opcode(&list[i]) == rdmap.ReadRequest {
			all = append(all, parseRead(list[i].payload))
		}
	}
	return all
}

func messages(list []captured) (all []message) {
	for _, m := range list {
		all = append(all, m.message)
	}
	return all
}

// located is what the other decoder says of a message.
var (
	located = regexp.MustCompile(`^(\S+) stag=(0x[0-9a-f]+) to=(0x[0-9a-f]+) .*len=(\d+) sha256=([0-9a-f]+)$`)
	hashed  = regexp.MustCompile(`len=(\d+) sha256=([0-9a-f]+)$`)
)

func shortSum(b []byte) string {
	sum := sha256.Sum256(b)
	return fmt.Sprintf("%x", sum[:8])
}

// checkWrite looks whether what the peer has written or answered last is where it belongs.
func (r *replay) checkWrite() {
	if r.delivered >= len(r.with.lines[r.peer]) {
		r.errorf("the peer has said more than the other decoder knows")
		return
	}
	m := located.FindStringSubmatch(r.with.lines[r.peer][r.delivered])
	if m == nil {
		return
	}
	var stag, n uint32
	var to uint64
	fmt.Sscanf(strings.Join(m[2:5], " "), "%v %v %d", &stag, &to, &n)
	if b := r.memory.bytes(stag, to, n); n > 0 && shortSum(b) != m[5] {
		r.errorf("at %#x of STag %#x are %d octets %.20x with the hash %s, and should be: %s", to, stag, len(b), b, shortSum(b), m[0])
	}
}

// finish ends the connection, and compares all that came of it.
func (r *replay) finish(t testing.TB) {
	if !r.over {
		if err := r.conn.Receive(driver{r.stream}); err != io.EOF {
			r.errorf("at the end %w", err)
		}
	}
	cause := r.stream.Err()
	r.stream.End(nil)
	r.checkEnd(cause)
	r.checkSaid()
	r.checkReceived()
	for i, c := range r.sent.list {
		flushed := cause != nil || r.own == fromR && r.with.silent
		if c.ID != uint64(i+1) || (c.Err != nil) && !(flushed && errors.Is(c.Err, rdmap.ErrFlushed)) {
			r.errorf("request %d completed %+v", i+1, c)
		}
	}
	if len(r.sent.list) != int(r.posted) {
		r.errorf("%d requests completed of %d", len(r.sent.list), r.posted)
	}
	r.checkRegion()
}

// checkEnd looks for the fault that ended the stream.
func (r *replay) checkEnd(cause error) {
	var e *rdmap.TerminateError
	if !errors.As(cause, &e) {
		e = &rdmap.TerminateError{}
	}
	want, remote := r.with.fault, r.with.finder != r.own
	if r.own == fromR && r.with.siwMissed != 0 {
		want, remote = r.with.siwMissed, false
	}
	if r.own == fromI && r.with.siwMissed != 0 || want == 0 {
		want, remote = 0, false
	}
	if e.Fault != want || e.Remote != remote {
		r.errorf("the stream ended with %v (%v), want %v, remote %v", e.Fault, cause, want, remote)
	}
}

// checkSaid compares what we have said with what siw said.
func (r *replay) checkSaid() {
	got, want := r.heard(), r.said
	switch {
	case r.own == fromR && r.with.silent:
		want = nil
	case r.own == fromR && r.with.siwMissed != 0:
		want = append(want[:0:0], captured{message: message{first: ddp.Header{Control: 0x47, QN: 2, MSN: 1, Last: true}}})
	}
	if len(got) != len(want) {
		r.errorf("we said %d messages, siw %d: %v", len(got), len(want), got)
		return
	}
	asked, shortened := reads(messages(r.hear)), 0
	for i := range got {
		g, w := got[i], want[i].message
		switch opcode(&w) {
		case rdmap.Terminate:
			r.checkTerminate(&g, &w)
			continue
		case rdmap.ReadRequest: // siw names its buffer otherwise
			a, b := parseRead(g.payload), parseRead(w.payload)
			a.sink, a.sinkTO, b.sink, b.sinkTO = 0, 0, 0, 0
			if a != b || g.String() != w.String() {
				r.errorf("message %d is %v %+v, siw's %v %+v", i, g, a, w, b)
			}
			continue
		case rdmap.ReadResponse:
			if len(asked) > 0 && int(asked[0].size) != len(w.payload) {
				w.payload = w.payload[:asked[0].size]
				shortened++
			}
			asked = asked[min(1, len(asked)):]
		default:
			m := hashed.FindStringSubmatch(r.with.lines[r.own][i+1])
			if m == nil || m[2] != shortSum(g.payload) {
				r.errorf("message %d has the hash %s, the other decoder says %v", i, shortSum(g.payload), m)
			}
		}
		g.first.Last, w.first.Last = false, false
		if g.first != w.first || !bytes.Equal(g.payload, w.payload) {
			r.errorf("message %d is %v %.20x, siw's %v %.20x", i, g, g.payload, w, w.payload)
		}
	}
	if r.own == fromR && shortened != r.with.stale {
		r.errorf("%d answers of siw have another length than was asked for, want %d", shortened, r.with.stale)
	}
}

// checkTerminate compares a Terminate of ours with that of siw, whose bits are in another order.
func (r *replay) checkTerminate(g, w *message) {
	if len(g.payload) < 4 || opcode(g) != rdmap.Terminate || g.first.QN != 2 || g.first.MSN != 1 {
		r.errorf("we said %v %x, want a Terminate", g, g.payload)
		return
	}
	f := ddp.NewFault(g.payload[0]>>4, g.payload[0], g.payload[1])
	if len(w.payload) == 0 {
		return // siw found no fault; checkEnd looks at ours
	}
	b := w.payload
	bits := b[2]&1<<7 | b[2]&2<<5 | b[2]&4<<3
	if theirs := ddp.NewFault(b[0], b[0]>>4, b[1]); f != theirs || f != r.with.fault || g.payload[2] != bits {
		r.errorf("we said %v with %02x, siw %v with %02x, want %v", f, g.payload[2], theirs, bits, r.with.fault)
	}
	from := 4
	switch {
	case bits == 0xe0: // siw's copy of the header names a length of 0 and a wrong message
		from = 4 + 2 + ddp.UntaggedHeader
	case r.with.stale > 0: // the header has the STag and offset of a Read of ours
		return
	}
	if !bytes.Equal(g.payload[from:], b[from:]) {
		r.errorf("our Terminate is %x, siw's %x", g.payload, b)
	}
}

// checkReceived compares what the receives hold with what the peer has sent.
func (r *replay) checkReceived() {
	var want []string
	for _, line := range r.with.lines[r.peer][1:] {
		if strings.HasPrefix(line, "Send") {
			want = append(want, line)
		}
	}
	n := 0
	for _, c := range r.received.list {
		if c.Err != nil {
			continue
		}
		if n >= len(want) {
			r.errorf("received %+v, which nobody sent", c)
			return
		}
		m := hashed.FindStringSubmatch(want[n])
		b := r.buffers[c.ID][:c.Length]
		invalidates := strings.Contains(want[n], "Inv ")
		if int(c.ID) != n || m == nil || m[1] != fmt.Sprint(c.Length) || m[2] != shortSum(b) ||
			c.Solicited != strings.HasPrefix(want[n], "SendSE") || c.Invalidated != invalidates ||
			invalidates && !strings.Contains(want[n], fmt.Sprintf("inv=0x%08x", c.STag)) {
			r.errorf("receive %d: %+v with the hash %s, want %s", n, c, shortSum(b), want[n])
		}
		n++
	}
	lost := 0
	if r.own == fromR {
		lost = r.with.lostSends
	}
	if n != len(want)-lost {
		r.errorf("%d messages received of %d", n, len(want))
	}
}

var sumOf = regexp.MustCompile(`(?m)^SUM off=0 len=131072 sha256=([0-9a-f]{64})$`)

// checkRegion looks whether the whole region of siwpeer is as it should be at the end: as siwpeer itself found it, or else
// as the messages that arrived make it.
func (r *replay) checkRegion() {
	mine, seed := r.request, 2
	if r.own == fromR {
		mine, seed = r.reply, 1
	}
	if len(mine.Private) != 16 {
		return
	}
	a := r.memory[binary.BigEndian.Uint32(mine.Private[8:])]
	if a == nil {
		return // withdrawn by the peer
	}
	want := pattern(regionSize, seed)
	for i := range r.hear[:r.delivered] {
		m := &r.hear[i]
		if m.first.Tagged && len(m.payload) > 0 {
			copy(want[m.first.TO-a.base:], m.payload)
		}
	}
	if !bytes.Equal(a.mem, want) {
		r.errorf("the region is not what the messages make of it")
	}
	if said := r.with.sums[r.own]; said != "" && said != fmt.Sprintf("%x", sha256.Sum256(a.mem)) {
		r.errorf("the region has another hash than %s, which siwpeer found", said)
	}
}

// sums reads what siwpeer has found in its region at both ends.
func sums(t testing.TB, file string) map[string]string {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	responder, initiator, both := strings.Cut(string(text), "--- initiator")
	if !both {
		t.Fatalf("%s says nothing of an initiator", file)
	}
	found := map[string]string{}
	for way, text := range map[string]string{fromR: responder, fromI: initiator} {
		if m := sumOf.FindStringSubmatch(text); m != nil {
			found[way] = m[1]
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no sum", file)
	}
	return found
}

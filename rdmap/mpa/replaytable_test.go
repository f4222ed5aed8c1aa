package mpa

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// replayed is what has to be known of a capture beyond its octets.
type replayed struct {
	name     string
	receives int // posted at both sides; 0: enough, -1: none

	// The responder's region, where not all is allowed.
	readOnly, writeOnly bool
	// reads are the IRD and ORD that the responder wanted, where its reply has others; wantsCRC: it wanted CRC.
	reads    [2]int
	wantsCRC bool
	rejects  bool

	// fault is what one side found, and told in a Terminate: finder.
	fault  ddp.Fault
	finder string

	// Where siw does what it should not, or what another may do otherwise: the fields in which our request, or our reply,
	// is different; the fault that siw missed as responder; that it spoke first; answers with the length of another
	// Read; Sends that complete nothing.
	request, answer []string
	siwMissed       ddp.Fault
	silent          bool
	stale           int
	lostSends       int

	damage int // the octet of the peer's stream that arrives as another; 0: none

	setup []string            // of request and answer, for the side that is replayed
	lines map[string][]string // of the other decoder, for one connection
	sums  map[string]string
}

// replays has every capture. siw's reserved flag is no flag of ours. siw raises its IRD to the ORD that it is asked for, which no text
// asks for.
var replays = []replayed{
	{name: "inv-bad-stag", siwMissed: ddp.ProtectionInvalidate, lostSends: 1},
	{name: "ops-short"},
	{name: "perf-read-1"}, {name: "perf-read-64"},
	{name: "perf-send-1"}, {name: "perf-send-64"}, {name: "perf-send-4096"},
	{name: "perf-write-1"}, {name: "perf-write-4096"},
	{name: "rdma-client"},
	{name: "read-no-right", writeOnly: true, siwMissed: ddp.ProtectionRights}, // S7
	{name: "reject-crc-strict", answer: []string{"CRC", "reject"}},            // MPA-004: nobody has to reject that
	{name: "reject-no-private-data", rejects: true},
	{name: "reject-private-data", rejects: true, answer: []string{"IRD", "ORD"}}, // of no meaning in a reject
	{name: "rev1-ops"},
	{name: "rping-gso-flag", request: []string{"reserved"}, answer: []string{"reserved"}},
	{name: "rping-p2p-read-crc"}, {name: "rping-p2p-write-crc"},
	{name: "rping-rev2"}, {name: "rping-rev2-crc"}, {name: "rping-rev2-crc-by-initiator"},
	{name: "rping-rev2-crc-by-responder", wantsCRC: true, answer: []string{"CRC"}}, // MPA-004: siw does without (S13)
	{name: "send-65537"}, {name: "send-65537-nocrc"}, {name: "send-inv"},
	{name: "server-first", silent: true}, // MPA-011, S4
	{name: "setup-ird-ord", reads: [2]int{2, 8}, answer: []string{"IRD"}},
	{name: "setup-private-data"},
	{name: "siw-zero-read-stale", fault: ddp.TaggedBounds, finder: fromI, stale: 1},
	{name: "term-inv-then-write", fault: ddp.TaggedSTag, finder: fromR},
	{name: "term-read-bad-stag", fault: ddp.ProtectionSTag, finder: fromR},
	{name: "term-read-bounds", fault: ddp.ProtectionBounds, finder: fromR},
	{name: "term-send-no-receive", receives: -1, fault: ddp.UntaggedNoBuffer, finder: fromR, lostSends: 1},
	{name: "term-write-bad-key", fault: ddp.TaggedSTag, finder: fromR},
	{name: "term-write-bad-stag", fault: ddp.TaggedSTag, finder: fromR},
	{name: "term-write-bounds", fault: ddp.TaggedBounds, finder: fromR},
	{name: "term-write-bounds-nocrc", fault: ddp.TaggedBounds, finder: fromR},
	{name: "term-write-no-right", readOnly: true, fault: ddp.TaggedSTag, finder: fromR},
	{name: "write-65537"},
	{name: "write-65537-gso", request: []string{"reserved"}, answer: []string{"reserved"}},
	{name: "zero-length"},
}

// TestReplays puts us in the place of either side of each connection that siw has had with itself. We say the same, remember
// the same, and end in the same way; where not, siw is at fault, and the table says so.
func TestReplays(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pcap")
	if err != nil || len(files) != len(replays) {
		t.Fatalf("%d captures, and the table has %d; %v", len(files), len(replays), err)
	}
	for _, with := range replays {
		for own, role := range map[string]string{fromI: "initiator", fromR: "responder"} {
			for _, step := range []int{0, 1, 700} {
				t.Run(fmt.Sprintf("%s/%s/%d", with.name, role, step), func(t *testing.T) {
					for i, c := range recordedAs(t, with, own) {
						for _, err := range replayOne(t, c, own, step) {
							t.Errorf("connection %d: %v", i+1, err)
						}
					}
				})
			}
		}
	}
}

// toReplay is a connection with all that is known of it.
type toReplay struct {
	*recorded
	with replayed
}

func recordedAs(t testing.TB, with replayed, own string) (all []toReplay) {
	file := filepath.Join("testdata", with.name)
	lines := decoded(t, file+".txt")
	with.sums = sums(t, file+".run")
	switch with.receives {
	case 0:
		with.receives = 20
	case -1:
		with.receives = 0
	}
	with.setup = with.request
	if own == fromR {
		with.setup = with.answer
	}
	for i, c := range connectionsOf(t, file+".pcap") {
		with.lines = lines[i]
		all = append(all, toReplay{c, with})
	}
	return all
}

func replayOne(t testing.TB, c toReplay, own string, step int) []error {
	r, err := newReplay(c.recorded, own, c.with, step)
	if err != nil {
		return []error{err}
	}
	return r.run(t)
}

// TestReplaysNotice damages what the peer says, octet by octet (of long streams some), without CRC: whatever matters is noticed.
func TestReplaysNotice(t *testing.T) {
	notices := map[string]bool{"rping-rev2": true, "rping-gso-flag": true, "rdma-client": true, "rev1-ops": true}
	for _, with := range replays {
		for own, peer := range map[string]string{fromI: fromR, fromR: fromI} {
			if !notices[with.name] {
				continue
			}
			c := recordedAs(t, with, own)[0]
			size, err := setupSize(c.streams[peer], peer == fromR)
			if err != nil {
				t.Fatal(err)
			}
			frames, tried := framesOf(c.streams[peer], size), 0
			step := 1
			if len(c.streams[peer]) > 1500 {
				step = 41
			}
			for at := size; at < len(c.streams[peer]); at += step {
				if meaningless(frames, at) {
					continue
				}
				tried++
				c.with.damage = at
				if len(replayOne(t, c, own, 0)) == 0 {
					t.Errorf("%s, replayed as %s: octet %d of what the peer says is another, and nobody notices", with.name, own, at)
				}
			}
			if tried < 30 {
				t.Errorf("%s, replayed as %s: %d octets", with.name, own, tried)
			}
		}
	}
}

// meaningless says that a receiver looks away from an octet: pad and CRC where CRC is off, what a Send that invalidates nothing
// has in place of the STag.
func meaningless(frames []framed, at int) bool {
	for _, f := range frames {
		begin := f.end - len(f.wire)
		if at < begin || at >= f.end {
			continue
		}
		at -= begin
		segment := f.h.Size() + len(f.payload)
		return at >= LengthSize+segment ||
			!f.h.Tagged && at >= LengthSize+2 && at < LengthSize+6
	}
	return true
}

// TestReplaysOfSetUp answers the requests that were tried on siw. Where we do not answer as siw does, the table says so.
func TestReplaysOfSetUp(t *testing.T) {
	differs := map[int]string{
		1: "[no answer]", // revision 0 is the RDMA Consortium's
		// siw brings all flags back: reserved ones, and the one that rejects, though it goes on.
		9: "[reserved]", 10: "[reject]",
		// More private data than siw takes, and octets before the answer, which only a socket can see (TestEarlyFrame).
		14: "[no answer of siw]", 15: "[no answer of siw]", 16: "[no answer of siw]", 39: "[no answer of siw]",
		// MPA-014: siw raises its IRD to the ORD that is asked for, but never lowers it.
		20: "[IRD]", 21: "[IRD]", 23: "[IRD]", 24: "[IRD]", 25: "[IRD]", 26: "[IRD]",
		27: "[IRD ORD]", // 0x3fff is not negotiated, and siw takes it for a number
		// MPA-015: a Write was not offered in either; there is nothing, and a Send.
		28: "[reject IRD ORD peer-to-peer ready private]", 29: "[ready]",
	}
	connections := connectionsOf(t, "testdata/setup/probe-setup.pcap")
	if len(connections) != 39 {
		t.Fatalf("%d connections", len(connections))
	}
	for i, c := range connections {
		got := answer(t, c)
		want := differs[i+1]
		if want == "" {
			want = "[]"
		}
		if got != want {
			t.Errorf("connection %d: our answer differs in %s, and should in %s", i+1, got, want)
		}
	}
}

// answer says in what our answer to a recorded request differs from siw's.
func answer(t *testing.T, c *recorded) string {
	stream := c.streams[fromI]
	if size, err := setupSize(stream, false); err == nil {
		stream = stream[:min(size, len(stream))]
	}
	wire := &script{in: stream}
	var theirs SetUp
	size, err := setupSize(c.streams[fromR], true)
	if err == nil && len(c.streams[fromR]) > 0 {
		theirs, _ = parseSetup(c.streams[fromR][:size], true) // siw's reject has a flag too many
	}
	if r, err := Await(t.Context(), wire, 0); err == nil {
		_, _ = r.Accept(t.Context(), &Options{NoCRC: true, IRD: 4, ORD: 4, Private: theirs.Private, Strict: true})
	}
	switch siw := len(c.streams[fromR]) > 0; {
	case len(wire.said) == 0 && siw:
		return "[no answer]"
	case len(wire.said) > 0 && !siw:
		return "[no answer of siw]"
	case len(wire.said) == 0:
		return "[]"
	}
	ours, err := parseSetup(wire.said, true)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprint(differences(&ours, &theirs))
}

package tests

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/dgrdma"
)

// Each preset against what is known of its kind of peer. The acknowledgement
// delay of a peer and the times are bounds, the rest are exact.
func TestQuirkProfiles(t *testing.T) {
	const ms = time.Millisecond
	type want struct {
		name                string
		first               [2]int // frame and transaction; 0: random
		plain               bool   // no introductions
		window, span        int    // most ids under way
		acks                dgrdma.AckPolicy
		noAcks, cumulative  bool
		resend, resendMost  time.Duration
		maxFrame            int
		chunk, final, align int
		noLength4           bool
		open                int
		noSentinel          bool
		ownDestination      bool
	}
	for _, w := range []want{
		{
			name: "fpga", first: [2]int{1, 1}, plain: true, window: 32, span: 1 << 14, acks: dgrdma.AckNever, cumulative: true, resendMost: 20 * ms,
			chunk: 16, final: 4, align: 16, open: 64, noSentinel: true,
		},
		{
			// 90 frames fit its socket's buffer (observation V6, docs/peers.md).
			name: "opencpi", plain: true, window: 90, span: 255, acks: dgrdma.AckRepeat, resend: 250 * ms, resendMost: 500 * ms,
			maxFrame: 1488, chunk: 1, final: 1, align: 1, open: 256,
		},
		{
			name: "opencpi/udp", plain: true, window: 128, span: 255, acks: dgrdma.AckRepeat, resend: 250 * ms, resendMost: 500 * ms,
			maxFrame: 510, chunk: 1, final: 1, align: 1, open: 256,
		},
		{
			name: "opencpi2", plain: true, window: 128, span: 255, acks: dgrdma.AckIfResent, noAcks: true, resendMost: time.Second,
			chunk: 1, final: 1, align: 1, open: 1 << 15, ownDestination: true,
		},
		{
			name: "opencpi-legacy", first: [2]int{0, 1}, plain: true, window: 64, span: 255, acks: dgrdma.AckOnce, resend: 250 * ms, resendMost: 500 * ms,
			maxFrame: 1488, chunk: 1, final: 1, align: 1, noLength4: true, open: 1, noSentinel: true,
		},
		{
			name: "opencpi-legacy/udp", first: [2]int{0, 1}, plain: true, window: 64, span: 255, acks: dgrdma.AckOnce, resend: 250 * ms, resendMost: 500 * ms,
			maxFrame: 510, chunk: 1, final: 1, align: 1, noLength4: true, open: 1, noSentinel: true,
		},
		{
			// Our own introduce their lives instead of beginning at 1.
			name: "native", window: 1 << 14, span: ack.MaxHistory - 1, acks: dgrdma.AckRepeat, resendMost: 20 * ms,
			chunk: 1, final: 1, align: 1, open: 1 << 15,
		},
	} {
		t.Run(w.name, func(t *testing.T) {
			name, udp := w.name, false
			if n := len(name) - 4; name[n:] == "/udp" {
				name, udp = name[:n], true
			}
			p, err := dgrdma.ProfileByName(name, udp)
			if err != nil {
				t.Fatal(err)
			}
			check := func(what string, ok bool) {
				t.Helper()
				if !ok {
					t.Errorf("%s: %+v", what, p)
				}
			}
			check("name", p.Name == name)
			check("first ids", int(p.FirstFrame) == w.first[0] && int(p.FirstTransaction) == w.first[1])
			check("window", p.Window <= w.window && (!w.plain || p.Window == w.window) && (w.plain || p.Window >= 256))
			check("span", p.Span >= p.Window && p.Span <= w.span)
			check("acknowledgements sent", p.Acks == w.acks)
			check("acknowledgements expected", p.NoAcks == w.noAcks && p.Cumulative == w.cumulative && p.Probe == w.cumulative)
			check("resend", p.MinTimeout >= w.resend && p.MinTimeout <= w.resendMost)
			check("frame size", p.MaxFrame == w.maxFrame)
			check("chunks", p.Chunk%w.chunk == 0 && p.Final == w.final && p.AddressMultiple == w.align && p.NoLength4 == w.noLength4)
			check("open transactions", p.OpenTransactions >= 1 && p.OpenTransactions <= w.open)
			check("sentinel", p.NoSentinel == w.noSentinel)
			check("destination", p.OwnDestination == w.ownDestination)
			check("history", p.Session || p.History >= 256)
			check("introductions", p.Session == !w.plain)
			if p.Acks != dgrdma.AckNever {
				check("acknowledgements are prompt", p.AckDelay <= 2*ms && p.AckEvery >= 1 && p.AckEvery <= 16)
			}
			// The first C++ driver forgets the ids of empty frames at once.
			if w.plain && p.Name != "opencpi" {
				check("ids of frames without messages", p.FreshAlone)
			}
		})
	}
	p := dgrdma.OpenCPI(false)
	if p.PeerAckDelay < 80*ms || p.PeerAckDelay > 100*ms || !p.FreshAcks || p.SlotTable != 256 {
		t.Errorf("opencpi: %+v", p)
	}
	if p := dgrdma.Legacy(false); !p.SplitAcks || p.SkipBit != 512 || p.SlotTable != 256 {
		t.Errorf("opencpi-legacy: %+v", p)
	}
	if p := dgrdma.FPGA(); !p.OverCounts || !p.NeverRetransmits || p.PeerAckDelay < 1500*time.Microsecond {
		t.Errorf("fpga: %+v", p)
	}
	if p := dgrdma.OpenCPI2(); !p.NeverRetransmits {
		t.Errorf("opencpi2: %+v", p)
	}
}

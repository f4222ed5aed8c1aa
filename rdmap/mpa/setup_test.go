package mpa

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

const (
	requestHex = "4d504120494420526571204672616d65"
	replyHex   = "4d504120494420526570204672616d65"
)

// MPA-012, MPA-013: frames as siw sends them (captures rdma-client, rev1-ops, rping-p2p-read-crc).
func TestSetupFrames(t *testing.T) {
	for _, c := range []struct {
		name, wire string
		s          SetUp
	}{
		{"Rev 1 request", requestHex + "4001 0003 616263", SetUp{Rev: 1, CRC: true, Private: []byte("abc")}},
		{"Rev 1 reply without anything", replyHex + "0001 0000", SetUp{Reply: true, Rev: 1}},
		{"Rev 2 request", requestHex + "1002 0006 0001 0010 4869", SetUp{Rev: 2, Enhanced: true, IRD: 1, ORD: 16, Private: []byte("Hi")}},
		{"peer-to-peer, Read", requestHex + "5002 0004 8001 4001", SetUp{Rev: 2, CRC: true, Enhanced: true, IRD: 1, ORD: 1, PeerToPeer: true, Ready: ReadyRead}},
		{"peer-to-peer, all", requestHex + "5002 0004 ffff ffff",
			SetUp{Rev: 2, CRC: true, Enhanced: true, IRD: 0x3fff, ORD: 0x3fff, PeerToPeer: true, Ready: ReadyRead | ReadyWrite | ReadySend}},
		{"reject", replyHex + "7002 0008 0000 0000 4e6f2e21", SetUp{Reply: true, Rev: 2, CRC: true, Reject: true, Enhanced: true, Private: []byte("No.!")}},
		{"reserved bits", replyHex + "0f02 0000", SetUp{Reply: true, Rev: 2, Reserved: 15}},
		{"markers", requestHex + "8001 0000", SetUp{Rev: 1, Markers: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire := unhex(t, c.wire)
			if got := c.s.append(nil); !bytes.Equal(got, wire) {
				t.Errorf("written as %x, want %x", got, wire)
			}
			got, err := parseSetup(wire, c.s.Reply)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.s) {
				t.Errorf("read as %+v, want %+v", got, c.s)
			}
			for n := range wire {
				if size, err := setupSize(wire[:n], c.s.Reply); err != nil || size <= n {
					t.Fatalf("cut after %d of %d octets: %d, %v; there is more to wait for", n, len(wire), size, err)
				}
				if _, err := parseSetup(wire[:n], c.s.Reply); err == nil {
					t.Fatalf("cut after %d of %d octets, and read nevertheless", n, len(wire))
				}
			}
		})
	}
}

// MPA-012: what is wrong is seen as soon as it is there, and named.
func TestWrongSetupFrames(t *testing.T) {
	for _, c := range []struct {
		name, wire string
		reply      bool
		want       error
		after      int // octets that show it
		says       string
	}{
		{"another protocol", hex.EncodeToString([]byte("GET / HTTP/1.1\r\n\r\n")), false, ErrNotMPA, 1, "the peer does not speak iWARP"},
		{"a key that ends otherwise", requestHex[:30] + "66" + "0001 0000", false, ErrNotMPA, 16, "MPA ID Req Framf"},
		{"a reply for a request", replyHex + "0001 0000", false, ErrNotMPA, 10, `not with "MPA ID Req Frame"`},
		{"a request for a reply", requestHex + "0001 0000", true, ErrNotMPA, 10, `not with "MPA ID Rep Frame"`},
		{"Rev 0 of the RDMA Consortium", requestHex + "0000 0000", false, ErrRevision, 20, "revision 0"},
		{"Rev 3", requestHex + "0003 0000", false, ErrRevision, 20, "revision 3"},
		{"Rev 255 in a reply", replyHex + "00ff 0000", true, ErrRevision, 20, "revision 255"},
		{"513 octets of private data", requestHex + "0001 0201", false, ErrPrivate, 20, "513 octets"},
		{"65535 octets of private data", replyHex + "0002 ffff", true, ErrPrivate, 20, "65535 octets"},
		{"enhanced, with nothing", requestHex + "1002 0000", false, ErrEnhanced, 20, "has 0 octets"},
		{"enhanced, with 3 octets", replyHex + "1002 0003 000000", true, ErrEnhanced, 23, "has 3 octets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire := unhex(t, c.wire)
			_, err := parseSetup(wire, c.reply)
			var refused *SetUpError
			if !errors.Is(err, c.want) || !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %v that says %q", err, c.want, c.says)
			}
			if c.want == ErrEnhanced {
				return
			}
			for n := range len(wire) + 1 {
				if _, err := setupSize(wire[:n], c.reply); (err != nil) != (n >= c.after) {
					t.Errorf("after %d octets: %v; it shows after %d", n, err, c.after)
				}
			}
		})
	}
}

func negotiate(oi, or *Options) (request, reply SetUp, initiator, responder Agreed, erri, errr error) {
	request, erri = oi.offer()
	if erri != nil {
		return
	}
	if errr = acceptable(&request); errr != nil {
		return
	}
	if reply, responder, errr = or.answer(&request); errr != nil {
		return
	}
	initiator, erri = oi.conclude(&request, &reply)
	return
}

// MPA-004, MPA-013, MPA-014, MPA-015 between two of us.
func TestNegotiation(t *testing.T) {
	for _, c := range []struct {
		name               string
		oi, or             Options
		initiator, replier Agreed // Private is not compared
	}{
		{"MPA-004: neither wants CRC", Options{NoCRC: true}, Options{NoCRC: true}, Agreed{Rev: 2, Long: true}, Agreed{Rev: 2, Long: true}},
		{"MPA-004: the initiator wants CRC", Options{}, Options{NoCRC: true}, Agreed{Rev: 2, CRC: true, Long: true}, Agreed{Rev: 2, CRC: true, Long: true}},
		{"MPA-004: the responder wants CRC", Options{NoCRC: true}, Options{}, Agreed{Rev: 2, CRC: true, Long: true}, Agreed{Rev: 2, CRC: true, Long: true}},
		{"MPA-013: Rev 1 knows no IRD and ORD, the options' hold", Options{Rev: 1, IRD: 1, ORD: 2}, Options{IRD: 3, ORD: 4},
			Agreed{Rev: 1, CRC: true, IRD: 1, ORD: 2, Long: true}, Agreed{Rev: 1, CRC: true, IRD: 3, ORD: 4, Long: true}},
		{"a strict initiator", Options{Strict: true}, Options{}, Agreed{Rev: 2, CRC: true}, Agreed{Rev: 2, CRC: true}},
		{"a strict responder", Options{}, Options{Strict: true}, Agreed{Rev: 2, CRC: true}, Agreed{Rev: 2, CRC: true}},
		{"MPA-014: each ORD within the other's IRD", Options{Strict: true, IRD: 4, ORD: 32}, Options{IRD: 8, ORD: 16},
			Agreed{Rev: 2, CRC: true, IRD: 4, ORD: 8}, Agreed{Rev: 2, CRC: true, IRD: 8, ORD: 4}},
		{"MPA-014: an initiator that does not read", Options{Strict: true, IRD: 4}, Options{IRD: 8, ORD: 2},
			Agreed{Rev: 2, CRC: true, IRD: 4}, Agreed{Rev: 2, CRC: true, ORD: 2}},
		{"MPA-014: the most", Options{Strict: true, IRD: MaxReads, ORD: MaxReads}, Options{IRD: MaxReads, ORD: MaxReads},
			Agreed{Rev: 2, CRC: true, IRD: MaxReads, ORD: MaxReads}, Agreed{Rev: 2, CRC: true, IRD: MaxReads, ORD: MaxReads}},
		{"MPA-015: Write is preferred", Options{Strict: true, PeerToPeer: true}, Options{},
			Agreed{Rev: 2, CRC: true, PeerToPeer: true, Ready: ReadyWrite}, Agreed{Rev: 2, CRC: true, PeerToPeer: true, Ready: ReadyWrite}},
		{"MPA-015: then Read", Options{Strict: true, PeerToPeer: true, Ready: ReadyRead | ReadySend}, Options{},
			Agreed{Rev: 2, CRC: true, PeerToPeer: true, Ready: ReadyRead}, Agreed{Rev: 2, CRC: true, PeerToPeer: true, Ready: ReadyRead}},
		{"MPA-015: then Send", Options{Strict: true, PeerToPeer: true}, Options{Ready: ReadySend},
			Agreed{Rev: 2, CRC: true, PeerToPeer: true, Ready: ReadySend}, Agreed{Rev: 2, CRC: true, PeerToPeer: true, Ready: ReadySend}},
		{"kinds without peer-to-peer mode say nothing", Options{Strict: true, Ready: ReadyRead}, Options{}, Agreed{Rev: 2, CRC: true}, Agreed{Rev: 2, CRC: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.oi.Private, c.or.Private = []byte("from the initiator"), []byte("from the responder")
			request, reply, initiator, responder, erri, errr := negotiate(&c.oi, &c.or)
			if erri != nil || errr != nil {
				t.Fatal(erri, errr)
			}
			if string(initiator.Private) != "from the responder" || string(responder.Private) != "from the initiator" {
				t.Errorf("private data %q and %q", initiator.Private, responder.Private)
			}
			initiator.Private, responder.Private = nil, nil
			if fmt.Sprint(initiator) != fmt.Sprint(c.initiator) || fmt.Sprint(responder) != fmt.Sprint(c.replier) {
				t.Errorf("agreed %+v and %+v\nwant   %+v and %+v", initiator, responder, c.initiator, c.replier)
			}
			if request.Markers || reply.Markers {
				t.Error("MPA-005: markers are never asked for")
			}
			if reply.Rev != request.Rev || reply.Enhanced != request.Enhanced {
				t.Errorf("MPA-013: %+v answered by %+v", request, reply)
			}
		})
	}
}

// Requests that only others send.
func TestAnswersToOthers(t *testing.T) {
	o := Options{IRD: 8, ORD: 6}
	for _, c := range []struct {
		name          string
		request, want SetUp
		agreed        Agreed
		err           error
	}{
		{"MPA-014: 0x3fff is not negotiated", SetUp{Rev: 2, Enhanced: true, IRD: NotNegotiated, ORD: NotNegotiated},
			SetUp{Reply: true, Rev: 2, CRC: true, Enhanced: true, IRD: NotNegotiated, ORD: NotNegotiated}, Agreed{Rev: 2, CRC: true, IRD: 8, ORD: 6}, nil},
		{"MPA-014: IRD alone is not negotiated", SetUp{Rev: 2, Enhanced: true, IRD: NotNegotiated, ORD: 3},
			SetUp{Reply: true, Rev: 2, CRC: true, Enhanced: true, IRD: 3, ORD: NotNegotiated}, Agreed{Rev: 2, CRC: true, IRD: 3, ORD: 6}, nil},
		{"MPA-013: Rev 2 without IRD and ORD", SetUp{Rev: 2, CRC: true}, SetUp{Reply: true, Rev: 2, CRC: true}, Agreed{Rev: 2, CRC: true, IRD: 8, ORD: 6}, nil},
		{"reserved bits are not brought back", SetUp{Rev: 1, Reserved: 15}, SetUp{Reply: true, Rev: 1, CRC: true}, Agreed{Rev: 1, CRC: true, IRD: 8, ORD: 6}, nil},
		{"siw's bit is not ours", SetUp{Rev: 1, Reserved: 8}, SetUp{Reply: true, Rev: 1, CRC: true}, Agreed{Rev: 1, CRC: true, IRD: 8, ORD: 6}, nil},
		{"R in a request says nothing", SetUp{Rev: 1, Reject: true}, SetUp{Reply: true, Rev: 1, CRC: true}, Agreed{Rev: 1, CRC: true, IRD: 8, ORD: 6}, nil},
		{"MPA-015: no kind offered", SetUp{Rev: 2, Enhanced: true, PeerToPeer: true}, SetUp{}, Agreed{}, ErrReady},
		{"MPA-015: B, C and D without A", SetUp{Rev: 2, Enhanced: true, Ready: ReadySend | ReadyWrite | ReadyRead},
			SetUp{Reply: true, Rev: 2, CRC: true, Enhanced: true}, Agreed{Rev: 2, CRC: true}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, agreed, err := o.answer(&c.request)
			if !errors.Is(err, c.err) {
				t.Fatalf("%v, want %v", err, c.err)
			}
			if c.err == nil && (fmt.Sprint(reply) != fmt.Sprint(c.want) || fmt.Sprint(agreed) != fmt.Sprint(c.agreed)) {
				t.Errorf("reply %+v, agreed %+v\nwant  %+v, %+v", reply, agreed, c.want, c.agreed)
			}
		})
	}
	if err := acceptable(&SetUp{Rev: 1, Markers: true}); !errors.Is(err, ErrMarkers) {
		t.Errorf("MPA-005: a request for markers: %v", err)
	}
}

// Replies as siw and others give them to a request of Rev 2 with IRD 4, ORD 8, peer-to-peer mode and the bit
// of our own kind.
func TestRepliesOfOthers(t *testing.T) {
	good := SetUp{Reply: true, Rev: 2, Enhanced: true, IRD: 8, ORD: 4, PeerToPeer: true, Ready: ReadyWrite}
	with := func(change func(*SetUp)) SetUp { s := good; change(&s); return s }
	for _, c := range []struct {
		name  string
		reply SetUp
		want  error
		fault ddp.Fault
		check func(Agreed) bool
	}{
		{"as asked", good, nil, 0, func(a Agreed) bool { return !a.CRC && a.ORD == 8 && a.IRD == 4 && a.Ready == ReadyWrite && !a.Long }},
		{"MPA-004: with CRC", with(func(s *SetUp) { s.CRC = true }), nil, 0, func(a Agreed) bool { return a.CRC }},
		{"MPA-005: markers", with(func(s *SetUp) { s.Markers = true }), ErrMarkers, 0, nil},
		{"MPA-013: Rev 1", with(func(s *SetUp) { s.Rev, s.Enhanced = 1, false }), ErrRevision, 0, nil},
		{"MPA-013: Rev 2 without IRD and ORD", with(func(s *SetUp) { s.Enhanced = false }), ErrRevision, 0, nil},
		{"MPA-014: less IRD lowers ORD", with(func(s *SetUp) { s.IRD = 3 }), nil, 0, func(a Agreed) bool { return a.ORD == 3 }},
		{"MPA-014: more IRD does not raise it", with(func(s *SetUp) { s.IRD = 128 }), nil, 0, func(a Agreed) bool { return a.ORD == 8 }},
		{"MPA-014: more ORD than our IRD", with(func(s *SetUp) { s.ORD = 5 }), ErrReads, ddp.NoReads, nil},
		{"MPA-014: 0x3fff", with(func(s *SetUp) { s.IRD, s.ORD = NotNegotiated, NotNegotiated }), nil, 0, func(a Agreed) bool { return a.ORD == 8 && a.IRD == 4 }},
		{"MPA-015: not A", with(func(s *SetUp) { s.PeerToPeer = false }), ErrReady, ddp.NoReadyFrame, nil},
		{"MPA-015: a kind that was not offered", with(func(s *SetUp) { s.Ready = ReadySend }), ErrReady, ddp.NoReadyFrame, nil},
		{"MPA-015: two kinds", with(func(s *SetUp) { s.Ready = ReadyRead | ReadyWrite }), nil, 0, func(a Agreed) bool { return a.Ready == ReadyWrite }},
		{"our bit brought back", with(func(s *SetUp) { s.Reserved = ownRequest }), nil, 0, func(a Agreed) bool { return !a.Long }},
		{"all bits brought back", with(func(s *SetUp) { s.Reserved = 15 }), nil, 0, func(a Agreed) bool { return !a.Long }},
		{"the bit of our own kind", with(func(s *SetUp) { s.Reserved = ownReply }), nil, 0, func(a Agreed) bool { return a.Long }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{NoCRC: true, IRD: 4, ORD: 8, PeerToPeer: true, Ready: ReadyWrite | ReadyRead}
			request, err := o.offer()
			if err != nil {
				t.Fatal(err)
			}
			agreed, err := o.conclude(&request, &c.reply)
			var refused *SetUpError
			if !errors.Is(err, c.want) || errors.As(err, &refused) && refused.Fault != c.fault {
				t.Fatalf("%v (%+v), want %v", err, refused, c.want)
			}
			if c.check != nil && !c.check(agreed) {
				t.Errorf("agreed %+v", agreed)
			}
		})
	}
	o := Options{}
	request, _ := o.offer()
	_, err := o.conclude(&request, &SetUp{Reply: true, Rev: 2, Enhanced: true, Reject: true, Private: []byte("No, thanks")})
	var rejected *RejectedError
	if !errors.As(err, &rejected) || string(rejected.Private) != "No, thanks" || !strings.Contains(err.Error(), "No, thanks") {
		t.Errorf("MPA-012: a reject: %v", err)
	}
	// Text is said as it is, and all of it; what could do something to a terminal is not.
	long := strings.Repeat("words ", 40)
	for said, want := range map[string]string{"": "connection", "No, thanks\x00\x00": "connection: No, thanks", long: "connection: " + long, "\x1b[2J": `private data "\x1b[2J"`, "\xff\x00": `private data "\xff\x00"`, "\x00": `private data "\x00"`} {
		if e := (&RejectedError{Private: []byte(said)}).Error(); !strings.HasSuffix(e, want) {
			t.Errorf("%q is said as %s", said, e)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		says string
	}{
		{Options{Private: make([]byte, 249)}, "LongPrivate"},
		{Options{Private: make([]byte, 509), LongPrivate: true}, "room for 508"},
		{Options{Private: make([]byte, 513), LongPrivate: true, Rev: 1}, "room for 512"},
		{Options{IRD: -1}, "0 to 16382"},
		{Options{ORD: 0x3fff}, "0 to 16382"},
		{Options{Rev: 3}, "revision 3"},
		{Options{Rev: 1, PeerToPeer: true}, "revision 2"},
	} {
		_, err := c.o.offer()
		if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want it to say %q", c.o, err, c.says)
		}
	}
	for _, o := range []Options{
		{Private: make([]byte, 248)}, {Private: make([]byte, 508), LongPrivate: true}, {Private: make([]byte, 512), LongPrivate: true, Rev: 1},
	} {
		s, err := o.offer()
		if err != nil {
			t.Errorf("%d octets of private data: %v", len(o.Private), err)
			continue
		}
		if got, err := parseSetup(s.append(nil), false); err != nil || len(got.Private) != len(o.Private) {
			t.Errorf("%d octets of private data come as %d, %v", len(o.Private), len(got.Private), err)
		}
	}
}

func FuzzSetup(f *testing.F) {
	for _, s := range []string{requestHex + "4001 0003 616263", requestHex + "5002 0004 8001 4001", replyHex + "7002 0008 0000 0000 4e6f2e21"} {
		f.Add(unhex(f, s), true)
		f.Add(unhex(f, s), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, reply bool) {
		size, err := setupSize(b, reply)
		if err == nil && (size < SetUpHeader || size > maxSetup) {
			t.Fatalf("a frame of %d octets", size)
		}
		s, err := parseSetup(b, reply)
		if err != nil {
			return
		}
		// Written again it says the same, but for the enhanced bit that revision 1 does not know.
		again, err := parseSetup(s.append(nil), reply)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(s) {
			t.Fatalf("%+v, written again %+v, %v", s, again, err)
		}
		for _, o := range []Options{{}, {NoCRC: true, IRD: 5, ORD: 7, Strict: true}} {
			if a, agreed, err := o.answer(&s); !reply && err == nil {
				if agreed.CRC != (s.CRC || !o.NoCRC) || s.Enhanced && s.IRD != NotNegotiated && agreed.ORD > int(s.IRD) || len(a.append(nil)) > maxSetup {
					t.Fatalf("%+v answered %+v, %+v", s, a, agreed)
				}
			}
			request, _ := o.offer()
			if agreed, err := o.conclude(&request, &s); reply && err == nil && agreed.ORD > o.ORD {
				t.Fatalf("%+v gives %+v", s, agreed)
			}
		}
	})
}

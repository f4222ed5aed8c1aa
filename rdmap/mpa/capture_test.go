package mpa

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

var operations = []string{"Write", "ReadRequest", "ReadResponse", "Send", "SendInv", "SendSE", "SendSEInv", "Terminate"}

// TestCaptures (MPA-007) reads what Linux's siw has sent, in pieces of all kinds, and finds the messages that another decoder has found; written again
// they are the same octets, but for pads and what covers them.
func TestCaptures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pcap")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".pcap"), func(t *testing.T) {
			want := decoded(t, strings.TrimSuffix(file, ".pcap")+".txt")
			for i, c := range connectionsOf(t, file) {
				request, fromInitiator := setupOf(t, c.streams[fromI], false)
				reply, fromResponder := setupOf(t, c.streams[fromR], true)
				crc := request.CRC || reply.CRC
				checkStream(t, crc, fromInitiator, describe(&request), want[i][fromI])
				checkStream(t, crc, fromResponder, describe(&reply), want[i][fromR])
			}
		})
	}
}

func setupOf(t *testing.T, stream []byte, reply bool) (SetUp, []byte) {
	size, err := setupSize(stream, reply)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseSetup(stream[:size], reply)
	if err != nil {
		t.Fatal(err)
	}
	if again := s.append(nil); !bytes.Equal(again, stream[:size]) {
		t.Errorf("%x written again is %x", stream[:size], again)
	}
	return s, stream[size:]
}

func checkStream(t *testing.T, crc bool, wire []byte, begins string, want []string) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i, next := range []func(int) int{whole, single, func(int) int { return 1 + rnd.IntN(3000) }} {
		sink := newSink(t)
		var segments []int
		count := 0
		sink.place = func(h *ddp.Header, n int) error {
			count++
			if h.Last {
				segments = append(segments, count)
				count = 0
			}
			return nil
		}
		rest, err := parseIn(t, &parser{crc: crc}, sink, wire, next)
		if err != nil || rest != 0 {
			t.Fatalf("way %d, seed %d: %v, %d octets over", i, seed, err, rest)
		}
		got := []string{begins}
		for j, m := range sink.got {
			got = append(got, line(m, segments[j]))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("way %d, seed %d: messages\n%s\nwant\n%s", i, seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if i > 0 {
			continue
		}
		var list []ddp.Message
		for _, m := range sink.got {
			list = append(list, outgoing(m, 0))
		}
		f := framer{crc: crc, copies: crc, segment: longest(wire)}
		if again := encode(t, f, list...); !bytes.Equal(plain(again), plain(wire)) {
			t.Errorf("written again in %d octets, which are others than those %d", len(again), len(wire))
		}
	}
}

// describe and line speak as the other decoder does.
func describe(s *SetUp) string {
	n := func(b bool) int { return map[bool]int{true: 1}[b] }
	kind, words, size := "Req", "", len(s.Private)
	if s.Reply {
		kind = "Rep"
	}
	if s.Enhanced {
		words = fmt.Sprintf(" A=%d B=%d IRD=%d C=%d D=%d ORD=%d", n(s.PeerToPeer), n(s.Ready&ReadySend != 0), s.IRD,
			n(s.Ready&ReadyWrite != 0), n(s.Ready&ReadyRead != 0), s.ORD)
		size += wordsSize
	}
	private := fmt.Sprintf("%x", s.Private)
	if private == "" {
		private = "-"
	}
	return fmt.Sprintf("MPA %s M=%d CRC=%d R=%d S=%d res=0x%x rev=%d pdlen=%d%s private=%s", kind, n(s.Markers), n(s.CRC), n(s.Reject), n(s.Enhanced),
		s.Reserved, s.Rev, size, words, private)
}

func line(m message, segments int) string {
	h := m.first
	where := fmt.Sprintf("stag=0x%08x to=0x%x", h.STag, h.TO)
	if !h.Tagged {
		where = fmt.Sprintf("qn=%d msn=%d mo=%d", h.QN, h.MSN, h.MO)
	}
	if name := operations[h.Control&15]; name == "SendInv" || name == "SendSEInv" {
		where += fmt.Sprintf(" inv=0x%08x", h.Invalidate)
	}
	sum := sha256.Sum256(m.payload)
	return fmt.Sprintf("%s %s segments=%d len=%d sha256=%x", operations[h.Control&15], where, segments, len(m.payload), sum[:8])
}

// longest returns the length of the longest segment, and plain the stream with zeros for pads and CRCs.
func longest(wire []byte) int {
	most := ddp.UntaggedHeader + 1
	for len(wire) > 0 {
		n := int(binary.BigEndian.Uint16(wire))
		most = max(most, n)
		wire = wire[LengthSize+n+TrailerSize(n):]
	}
	return most
}

func plain(wire []byte) []byte {
	wire = bytes.Clone(wire)
	for at := 0; at < len(wire); {
		n := int(binary.BigEndian.Uint16(wire[at:]))
		at += LengthSize + n
		clear(wire[at:][:TrailerSize(n)])
		at += TrailerSize(n)
	}
	return wire
}

package mpa

import (
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// The two directions of a connection, in the words of the other decoder.
const (
	fromI = "I>R"
	fromR = "R>I"
)

// recorded is one connection of a capture.
type recorded struct {
	streams map[string][]byte // by direction
	packets []recordedPacket
}

// recordedPacket brought the octets of its direction up to the one at end.
type recordedPacket struct {
	way string
	end int
}

// connectionsOf puts the octets of each connection together, in the order in which connections were made. Nothing is lost
// in the captures, and what is sent again is dropped.
func connectionsOf(t testing.TB, file string) []*recorded {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	type sender struct {
		c    *recorded
		way  string
		next uint32
	}
	var all []*recorded
	senders := map[[2]netip.AddrPort]*sender{} // by addresses, the sender's first
	for p := range gopacket.NewPacketSource(r, r.LinkType()).Packets() {
		tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if !ok {
			continue
		}
		ip := p.NetworkLayer().NetworkFlow()
		src, _ := netip.AddrFromSlice(ip.Src().Raw())
		dst, _ := netip.AddrFromSlice(ip.Dst().Raw())
		ends := [2]netip.AddrPort{netip.AddrPortFrom(src, uint16(tcp.SrcPort)), netip.AddrPortFrom(dst, uint16(tcp.DstPort))}
		if tcp.SYN && !tcp.ACK {
			c := &recorded{streams: map[string][]byte{}}
			all = append(all, c)
			senders[ends] = &sender{c: c, way: fromI}
			senders[[2]netip.AddrPort{ends[1], ends[0]}] = &sender{c: c, way: fromR}
		}
		s := senders[ends]
		if tcp.SYN {
			s.next = tcp.Seq + 1
			continue
		}
		skip := int(int32(s.next - tcp.Seq))
		if len(tcp.Payload) == 0 || skip >= len(tcp.Payload) {
			continue
		}
		if skip < 0 {
			t.Fatalf("%s: octets are missing", file)
		}
		s.c.streams[s.way] = append(s.c.streams[s.way], tcp.Payload[skip:]...)
		s.c.packets = append(s.c.packets, recordedPacket{s.way, len(s.c.streams[s.way])})
		s.next = tcp.Seq + uint32(len(tcp.Payload))
	}
	return all
}

// decoded reads what the other decoder has found in each connection, by direction, without what it says of the payload
// of Read Requests and Terminates, and of pads and ends.
func decoded(t testing.TB, file string) []map[string][]string {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^ *\d+ (?:(\d+):)?(I>R|R>I) (\S+) +(.*)$`)
	payload := regexp.MustCompile(` (sink|src|term)=.*( segments=)`)
	var found []map[string][]string
	for _, l := range lines.FindAllStringSubmatch(string(text), -1) {
		n := 1 // only where there are several, it says which
		if l[1] != "" {
			n, _ = strconv.Atoi(l[1])
		}
		for len(found) < n {
			found = append(found, map[string][]string{})
		}
		if l[3] != "pad" {
			found[n-1][l[2]] = append(found[n-1][l[2]], l[3]+" "+payload.ReplaceAllString(l[4], "$2"))
		}
	}
	return found
}

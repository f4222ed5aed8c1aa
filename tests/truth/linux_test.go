package truth

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// How many datagrams offload of Linux joins, and how many bytes.
const (
	mostSegments = 64
	mostJoined   = 65_000
)

// How a capture has its packets.
const (
	asEther    = iota // frames of Ethernet, without IP
	asUDP             // over IPv4 on Ethernet
	asUDP6            // over IPv6 on Ethernet
	asRaw             // over IPv4, without a link layer
	asCooked          // over IPv4, as "any" of tcpdump has it: without the receiver's hardware address
	asCooked2         // the newer one
	asWireKind        // how many there are
)

// taking is how a capture was taken.
type taking struct {
	point    int // node 0, node 1, or the middle
	as       int
	gso, gro bool
	oneWay   int // -1: both; else only what that node sends
	twice    bool
	begins   float64 // the share that passed before
	ends     float64 // the share that passed when it ended
	lost     float64 // the share of records at each of which a run begins that the capture loses
	lostRun  int     // of records
	tells    bool    // the file says how much that was
	ng, nano bool
	snap     int           // 0: all
	disorder bool          // of records within some microseconds
	clock    time.Duration // by how much it is set in the middle
	cut      bool          // the file ends within a record
}

func drawTaking(seed uint64) taking {
	d := worlds.NewDice(seed, 2)
	k := taking{point: d.IntN(3), as: d.Pick(asEther, asUDP, asUDP, asUDP, asUDP6, asRaw, asCooked, asCooked2), oneWay: -1, ends: 1}
	k.gso, k.gro = d.Chance(0.7), d.Chance(0.5)
	if d.Chance(0.1) {
		k.oneWay = d.IntN(2)
	}
	k.twice = d.Chance(0.04)
	if d.Chance(0.25) {
		k.begins = d.Float64() / 2
	}
	if d.Chance(0.2) {
		k.ends = 0.5 + d.Float64()/2
	}
	if d.Chance(0.35) {
		k.lost, k.lostRun = 0.05*d.Float64(), d.Pick(1, 3, 20, 100)
	}
	k.ng, k.nano = d.Chance(0.6), d.Chance(0.5)
	k.tells = k.ng && d.Chance(0.7)
	if d.Chance(0.15) {
		k.snap = d.Pick(60, 68, 80, 96, 128, 256, 1000)
	}
	k.disorder = d.Chance(0.1)
	if d.Chance(0.03) {
		k.clock = time.Duration(d.Pick(-1, 1)) * d.Span(10*time.Millisecond, time.Hour)
	}
	k.cut = d.Chance(0.03)
	return k
}

func (k taking) String() string {
	s := fmt.Sprintf("captured at %s as %s", [3]string{"node 0", "node 1", "the middle"}[k.point], [asWireKind]string{"Ethernet", "UDP", "UDP6", "raw", "cooked", "cooked2"}[k.as])
	for _, c := range []struct {
		is   bool
		what string
	}{
		{k.gso, "GSO"}, {k.gro, "GRO"}, {k.oneWay >= 0, fmt.Sprint("only from node ", k.oneWay)}, {k.twice, "everything twice"}, {k.begins > 0, fmt.Sprintf("from %.2f on", k.begins)},
		{k.ends < 1, fmt.Sprintf("until %.2f", k.ends)}, {k.lost > 0, fmt.Sprintf("runs of %d lost at %.3f, told %v", k.lostRun, k.lost, k.tells)}, {k.snap > 0, fmt.Sprint("snap length ", k.snap)},
		{k.disorder, "in disorder"}, {k.clock != 0, fmt.Sprint("clock set by ", k.clock)}, {k.cut, "file cut"}, {k.ng, "pcapng"}, {!k.nano, "microseconds"},
	} {
		if c.is {
			s += ", " + c.what
		}
	}
	return s
}

// packet is a record of a capture: one datagram or several.
type packet struct {
	at     time.Duration
	parts  []passing
	number int
}

// shot is a frame in a capture.
type shot struct {
	passing
	record  int
	visible int  // bytes, from the start
	joined  int  // how many datagrams its record has
	last    bool // of them
	order   int
}

// made is a capture with what is known of it.
type made struct {
	taking
	file    []byte
	shots   []*shot // those of which something is in the file
	hidden  []*shot // those behind the snap length
	records int
	dropped int // by the capture
}

func (m *made) extension() string {
	if m.ng {
		return "pcapng"
	}
	return "pcap"
}

// take makes a capture of what passed.
func (k taking) take(seed uint64, l *ledger) *made {
	d := worlds.NewDice(seed, 3)
	m := &made{taking: k}
	var passed []passing
	for _, p := range l.at[k.point] {
		if k.oneWay < 0 || p.from == k.oneWay {
			passed = append(passed, p)
		}
	}
	packets := k.join(passed)
	slices.SortStableFunc(packets, func(a, b packet) int { return int(a.at - b.at) })
	if k.twice {
		var both []packet
		for _, p := range packets {
			again := p
			again.at += time.Duration(d.Between(500, 9000))
			both = append(both, p, again)
		}
		packets = both
		slices.SortStableFunc(packets, func(a, b packet) int { return int(a.at - b.at) })
	}
	packets = packets[int(k.begins*float64(len(packets))):max(int(k.ends*float64(len(packets))), int(k.begins*float64(len(packets))))]
	var kept []packet
	lose := 0
	for _, p := range packets {
		if lose == 0 && d.Chance(k.lost) {
			lose = d.Between(1, k.lostRun)
		}
		if lose > 0 {
			lose--
			m.dropped++
			continue
		}
		kept = append(kept, p)
	}
	if k.disorder {
		for i := 1; i < len(kept); i++ {
			if kept[i].parts[0].out != kept[i-1].parts[0].out && kept[i].at-kept[i-1].at < 30*time.Microsecond && d.Chance(0.2) {
				kept[i], kept[i-1] = kept[i-1], kept[i]
				i++
			}
		}
	}
	m.write(kept)
	return m
}

// join is what offload makes of datagrams.
func (k taking) join(passed []passing) (packets []packet) {
	for _, p := range passed {
		offload := k.as != asEther && k.point != middle && (p.out && k.gso || !p.out && k.gro)
		if n := len(packets); offload && n > 0 {
			last := &packets[n-1]
			first, end := last.parts[0], last.parts[len(last.parts)-1]
			near := p.at == first.at
			if !p.out {
				near = p.at-first.at <= 20*time.Microsecond
			}
			if near && end.out == p.out && p.from == first.from && len(end.bytes) == len(first.bytes) && len(p.bytes) <= len(first.bytes) &&
				len(last.parts) < mostSegments && (len(last.parts)+1)*(len(first.bytes)+2) <= mostJoined {
				last.parts = append(last.parts, p)
				continue
			}
		}
		packets = append(packets, packet{at: p.at, parts: []passing{p}})
	}
	return packets
}

// began is when captures begin.
var began = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// write makes the file, and knows what is visible in it.
func (m *made) write(packets []packet) {
	var w capture.Writer
	link := map[int]int{asEther: 1, asUDP: 1, asUDP6: 1, asRaw: 101, asCooked: 113, asCooked2: 276}[m.as]
	o := binary.LittleEndian
	if m.ng {
		m.file = w.Begin(nil, []capture.Interface{{Name: "eth0", LinkType: link}})
	} else {
		magic := uint32(0xA1B2C3D4)
		if m.nano {
			magic = 0xA1B23C4D
		}
		m.file = o.AppendUint16(o.AppendUint16(o.AppendUint32(nil, magic), 2), 4)
		m.file = o.AppendUint32(o.AppendUint32(append(m.file, make([]byte, 8)...), 262144), uint32(link))
	}
	order := 0
	for i := range packets {
		p := &packets[i]
		p.number = i + 1
		at := p.at
		if m.clock != 0 && i > len(packets)/2 {
			at += m.clock
		}
		if !m.nano {
			at = at.Truncate(time.Microsecond)
		}
		b, head := m.packed(p)
		length, captured := len(b), len(b)
		if m.snap > 0 {
			captured = min(captured, m.snap)
		}
		rec := capture.Record{Time: began.Add(at), Name: "eth0", LinkType: link, Data: b[:captured], Length: length}
		before := len(m.file)
		if m.ng {
			m.file = w.Append(m.file, &rec)
		} else {
			fraction := uint32(rec.Time.Nanosecond())
			if !m.nano {
				fraction /= 1000
			}
			m.file = o.AppendUint32(o.AppendUint32(m.file, uint32(rec.Time.Unix())), fraction)
			m.file = append(o.AppendUint32(o.AppendUint32(m.file, uint32(captured)), uint32(length)), rec.Data...)
		}
		if m.cut && i == len(packets)-1 {
			m.file = m.file[:before+20]
			return
		}
		m.records++
		for n, part := range p.parts {
			s := &shot{passing: part, record: p.number, joined: len(p.parts), last: n == len(p.parts)-1, order: order}
			s.at = at
			order++
			start := head
			if m.as != asEther {
				head += frame.PrefixSize
			}
			s.visible = min(max(captured-head, 0), len(part.bytes))
			head += len(part.bytes)
			if captured > start {
				m.shots = append(m.shots, s)
			} else {
				m.hidden = append(m.hidden, s)
			}
		}
	}
	if m.ng && m.tells {
		m.file = w.Dropped(m.file, m.dropped, began)
	}
}

// packed is a packet as the capture has it, and how long it is before the first datagram.
func (m *made) packed(p *packet) (b []byte, head int) {
	from, to := byte(1+p.parts[0].from), byte(1+p.parts[0].to)
	var payload []byte
	for _, part := range p.parts {
		if m.as != asEther {
			payload = append(payload, 0, 0)
		}
		payload = append(payload, part.bytes...)
	}
	if short := 46 - len(payload); m.as == asEther && !p.parts[0].out && short > 0 {
		payload = append(payload, make([]byte, short)...) // Ethernet's padding, which the sender does not see
	}
	ether := &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, from}, DstMAC: []byte{2, 0, 0, 0, 0, to}, EthernetType: frame.EtherType}
	if m.as == asEther {
		return serialize(ether, gopacket.Payload(payload)), 14
	}
	udp := &layers.UDP{SrcPort: 7000 + layers.UDPPort(from), DstPort: 7000 + layers.UDPPort(to)}
	ip4 := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, from}, DstIP: []byte{10, 0, 0, to}}
	ip6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: append(make([]byte, 15), from), DstIP: append(make([]byte, 15), to)}
	ip6.SrcIP[0], ip6.DstIP[0] = 0xFD, 0xFD
	switch m.as {
	case asUDP:
		ether.EthernetType = layers.EthernetTypeIPv4
		b = serialize(ether, ip4, udp, gopacket.Payload(payload))
	case asUDP6:
		ether.EthernetType = layers.EthernetTypeIPv6
		b = serialize(ether, ip6, udp, gopacket.Payload(payload))
	default:
		b = serialize(ip4, udp, gopacket.Payload(payload))
	}
	mac := []byte{2, 0, 0, 0, 0, from, 0, 0}
	kind := byte(0)
	if p.parts[0].out {
		kind = 4
	}
	switch m.as {
	case asCooked:
		b = append(append(append([]byte{0, kind, 0, 1, 0, 6}, mac...), 8, 0), b...)
	case asCooked2:
		b = append(append([]byte{8, 0, 0, 0, 0, 0, 0, 2, 0, 1, kind, 6}, mac...), b...)
	}
	return b, len(b) - len(payload)
}

func serialize(ls ...gopacket.SerializableLayer) []byte {
	for i, l := range ls {
		if udp, ok := l.(*layers.UDP); ok {
			udp.SetNetworkLayerForChecksum(ls[i-1].(gopacket.NetworkLayer))
		}
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
		panic(err)
	}
	return bytes.Clone(buf.Bytes())
}

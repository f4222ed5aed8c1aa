package capture

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
)

// machine runs a filter as the kernel does, without what the kernel alone knows.
func machine(t testing.TB, f Filter, link int) *bpf.VM {
	t.Helper()
	a := assembler{at: map[label]int{}}
	if link == linkEthernet {
		a.jump(toEthernet)
	} else {
		a.jump(toRaw)
	}
	a.packets(&f)
	if err := a.link(); err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(a.code)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func passes(t testing.TB, f Filter, link int, data []byte) bool {
	t.Helper()
	n, err := machine(t, f, link).Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func ends(t testing.TB, all ...string) (e []End) {
	t.Helper()
	for _, s := range all {
		one, err := ParseEnd(s)
		if err != nil {
			t.Fatal(err)
		}
		e = append(e, one)
	}
	return e
}

// asked is the protocol that a filter asks for.
type asked struct{ Filter }

func (a asked) Ethernet(etherType uint16) bool { return etherType == a.EtherType }

func (a asked) Datagram(src, dst netip.AddrPort, _ []byte, length int) (size int, ok bool) {
	return length, len(a.Ports) == 0 || slices.Contains(a.Ports, src.Port()) || slices.Contains(a.Ports, dst.Port())
}

// wanted reports whether who reads a packet has a use for it: it is the protocol's, or
// is counted as a part of such.
func wanted(f Filter, link int, data []byte) bool {
	r := NewReader(&sliceSource{packets: []capturetest.Packet{capturetest.Of(link, data)}, end: errEnd}, asked{f})
	p, err := r.Next()
	if err != nil {
		return r.Stats().Fragments > 0
	}
	return len(f.Ends) == 0 || slices.ContainsFunc(f.Ends, func(e End) bool { return e.Is(p.Src) || e.Is(p.Dst) })
}

var errEnd = fmt.Errorf("the end")

func someFilters(t testing.TB) map[string]Filter {
	const own = frame.EtherType
	return map[string]Filter{
		"all":          {EtherType: own},
		"other type":   {EtherType: 0xF055},
		"port":         {EtherType: own, Ports: []uint16{7, 40002}},
		"source port":  {EtherType: own, Ports: []uint16{40001}},
		"other port":   {EtherType: own, Ports: []uint16{7}},
		"IPv4":         {EtherType: own, Ends: ends(t, "10.9.9.9", "10.0.0.2")},
		"IPv4 port":    {EtherType: own, Ends: ends(t, "10.0.0.1:40001")},
		"IPv4 no port": {EtherType: own, Ends: ends(t, "10.0.0.1:40002")},
		"IPv6":         {EtherType: own, Ends: ends(t, "fd00::2")},
		"IPv6 port":    {EtherType: own, Ends: ends(t, "[fd00::1]:40001")},
		"IPv6 no port": {EtherType: own, Ends: ends(t, "[fd00::2]:1")},
		"destination":  {EtherType: own, Ends: ends(t, "02:00:00:00:00:02")},
		"source":       {EtherType: own, Ends: ends(t, "02:00:00:00:00:09", "02:00:00:00:00:01")},
		"nobody":       {EtherType: own, Ends: ends(t, "02:00:00:00:00:03", "10.0.0.3", "fd00::3")},
		"both":         {EtherType: own, Ports: []uint16{40002}, Ends: ends(t, "10.0.0.1:40001", "02:00:00:00:00:01")},
		"not both":     {EtherType: own, Ports: []uint16{7}, Ends: ends(t, "10.0.0.1", "fd00::1")},
	}
}

// Of what can be seen, the filter takes what who reads wants, and nothing else. It does
// not look through a second tag behind the one that the kernel takes out, nor through headers
// of IPv6 between its first one and UDP.
func TestFilterTakesWhatIsWanted(t *testing.T) {
	for name, p := range wrapped(t) {
		if p.Link != linkEthernet && p.Link != linkRaw || name == "segmentedIPv4" {
			continue
		}
		for asked, f := range someFilters(t) {
			want := wanted(f, p.Link, p.Data)
			if slices.Contains([]string{"ethernetQinQ", "udp6extended", "udp6auth"}, name) {
				want = true
			}
			if got := passes(t, f, p.Link, p.Data); got != want {
				t.Errorf("%s, filter of %s: %v, want %v", name, asked, got, want)
			}
		}
	}
}

// What is not the protocol's is dropped before it is copied.
func TestFilterDropsTheRest(t *testing.T) {
	all := wrapped(t)
	change := func(name string, at int, v byte) []byte { return capturetest.PatchByte(all[name].Data, at, v) }
	f := Filter{EtherType: frame.EtherType}
	type packet struct {
		link int
		data []byte
		want bool
	}
	packets := map[string]packet{
		"TCP over IPv4":                {linkRaw, change("raw4", 9, 6), false},
		"TCP over IPv6":                {linkRaw, change("raw6", 6, 6), false},
		"ICMP over IPv6":               {linkEthernet, change("udp6", 14+6, 58), false},
		"TCP in a VLAN":                {linkEthernet, change("udp4VLAN", 18+9, 6), false},
		"ARP":                          {linkEthernet, append(make([]byte, 12), 8, 6, 0, 1), false},
		"ARP in a VLAN":                {linkEthernet, append(make([]byte, 12), 0x81, 0, 0, 5, 8, 6), false},
		"two tags":                     {linkEthernet, append(make([]byte, 12), 0x88, 0xA8, 0, 5, 0x81, 0), true},
		"later fragment":               {linkRaw, change("raw4", 7, 1), true},
		"no IP":                        {linkRaw, change("raw4", 0, 0x25), false},
		"nothing":                      {linkRaw, nil, false},
		"shorter than Ethernet":        {linkEthernet, make([]byte, 13), false},
		"shorter than its header of 4": {linkRaw, all["raw4"].Data[:9], false},
	}
	for _, extension := range []byte{0, 43, 44, 51, 60} {
		packets[fmt.Sprint("IPv6 with extension ", extension)] = packet{linkRaw, change("raw6", 6, extension), true}
	}
	for name, c := range packets {
		if got := passes(t, f, c.link, c.data); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	// The protocol's own look at what a datagram carries is the last.
	f.Datagram = []bpf.Instruction{
		bpf.LoadIndirect{Off: 0, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 2, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: Take},
	}
	for _, name := range []string{"raw4", "raw6", "udp4options", "udp4VLAN", "ethernet"} {
		if !passes(t, f, all[name].Link, all[name].Data) {
			t.Errorf("%s is dropped", name)
		}
	}
	for name, at := range map[string]int{"raw4": 28, "raw6": 48, "udp4options": 32, "udp4VLAN": 46} {
		if passes(t, f, all[name].Link, change(name, at, 3)) {
			t.Errorf("%s is taken with another first byte", name)
		}
	}
	// Fragments that lack ports may be of datagrams that are wanted.
	f.Ports = []uint16{7}
	if !passes(t, f, linkRaw, change("raw4", 7, 1)) {
		t.Error("with ports, a later fragment is dropped")
	}
}

// Addresses are compared whole, and with those of their kind.
func TestFilterComparesWholeAddresses(t *testing.T) {
	all := wrapped(t)
	none := capturetest.PatchByte(all["ethernet"].Data, 0, 0)
	copy(none, make([]byte, 12)) // from nobody to nobody
	for _, c := range []struct {
		end, packet string
		data        []byte
	}{
		{"02:00:00:01:00:01", "ethernet", all["ethernet"].Data},
		{"03:00:00:00:00:01", "ethernet", all["ethernet"].Data},
		{"02:00:00:00:01:01", "ethernet", all["ethernet"].Data},
		{"10.0.0.1", "ethernet", none},
		{"fd00::1:0:0:2", "udp6", all["udp6"].Data},
		{"fd00:0:0:1::2", "udp6", all["udp6"].Data},
	} {
		if passes(t, Filter{EtherType: frame.EtherType, Ends: ends(t, c.end)}, linkEthernet, c.data) {
			t.Errorf("%s takes %s % x", c.end, c.packet, c.data)
		}
	}
}

// A filter that is too long for the kernel is one by protocol, and a program that is too long
// is refused.
func TestFilterIsTooLong(t *testing.T) {
	f := Filter{EtherType: frame.EtherType}
	short, err := f.compile()
	if err != nil {
		t.Fatal(err)
	}
	for port := range uint16(maxProgram) {
		f.Ports = append(f.Ports, port+1)
	}
	got, err := f.compile()
	if err != nil || len(got) != len(short) {
		t.Errorf("%d instructions, %v; want %d", len(got), err, len(short))
	}
	f.Ports = nil
	for i := range maxProgram {
		f.Ends = append(f.Ends, ends(t, fmt.Sprintf("10.0.%d.%d", i>>8, i&0xFF))...)
	}
	if got, err := f.compile(); err != nil || len(got) != len(short) {
		t.Errorf("%d instructions for addresses, %v; want %d", len(got), err, len(short))
	}
	f.Program = make(Program, maxProgram)
	if _, err := f.compile(); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("error %v", err)
	}
}

// FuzzFilter: whatever a packet is, the filter takes it if who reads wants it.
func FuzzFilter(f *testing.F) {
	for _, p := range wrapped(f) {
		f.Add(p.Data, p.Link == linkEthernet)
	}
	filters := someFilters(f)
	machines := map[string]map[int]*bpf.VM{}
	for name, filter := range filters {
		machines[name] = map[int]*bpf.VM{linkEthernet: machine(f, filter, linkEthernet), linkRaw: machine(f, filter, linkRaw)}
	}
	f.Fuzz(func(t *testing.T, data []byte, ethernet bool) {
		link := linkRaw
		if ethernet {
			link = linkEthernet
		}
		for name, filter := range filters {
			n, err := machines[name][link].Run(data)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 && wanted(filter, link, data) {
				t.Fatalf("the filter of %s drops % x", name, data)
			}
		}
	})
}

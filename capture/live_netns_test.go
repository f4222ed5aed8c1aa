package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// cable joins two new devices of one namespace, over which the kernel itself says nothing.
func cable(t *testing.T, n *netns.Namespace, names ...string) {
	t.Helper()
	in(t, n, func() error {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0); err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name = names[0]
		err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: names[1]})
		for _, name := range names {
			if err == nil {
				err = setUp(name)
			}
		}
		for _, name := range names {
			if err == nil {
				err = awaitCarrier(name)
			}
		}
		return err
	})
}

// awaitCarrier waits until what is sent through a device is not thrown away any more.
func awaitCarrier(name string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		link, err := netlink.LinkByName(name)
		if err != nil || link.Attrs().OperState == netlink.OperUp {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("device %s is %v", name, link.Attrs().OperState)
		}
	}
}

func setUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// in does something in a namespace.
func in(t *testing.T, n *netns.Namespace, do func() error) {
	t.Helper()
	var err error
	n.In(func() { err = do() })
	if err != nil {
		t.Fatal(err)
	}
}

// send sends frames out of a device, as they are.
func send(t *testing.T, n *netns.Namespace, device string, frames ...[]byte) {
	t.Helper()
	in(t, n, func() error {
		ifi, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, f := range frames {
			if err := unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: ifi.Index}); err != nil {
				return fmt.Errorf("send % x: %w", f, err)
			}
		}
		return nil
	})
}

// own is a frame of the protocol with that payload behind tags.
func own(payload string, tags ...byte) []byte {
	f := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
	f = binary.BigEndian.AppendUint16(append(f, tags...), frame.EtherType)
	return append(f, payload...)
}

// openIn captures in a namespace.
func openIn(ctx context.Context, t *testing.T, n *netns.Namespace, name string, f Filter) *Live {
	t.Helper()
	var live *Live
	in(t, n, func() (err error) {
		live, err = OpenLive(ctx, name, f, nil)
		return err
	})
	t.Cleanup(func() { live.Close() })
	return live
}

// until reads up to the record of that interface that ends with a word.
func until(t *testing.T, live *Live, name, last string) (all []string) {
	t.Helper()
	for {
		rec, err := live.Next()
		if err != nil {
			t.Fatalf("after %q: %v", all, err)
		}
		if rec.Time.IsZero() || time.Since(rec.Time).Abs() > time.Hour || rec.Length != len(rec.Data) {
			t.Errorf("%+v", rec)
		}
		all = append(all, rec.Name+" "+string(rec.Data))
		if rec.Name == name && bytes.HasSuffix(rec.Data, []byte(last)) {
			return all
		}
	}
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestLiveOnAllInterfaces: what passes several interfaces is captured once for each, with its
// name; and that goes on when interfaces go, come, or are renamed.
func TestLiveOnAllInterfaces(t *testing.T) {
	netns.Require(t)
	n := netns.New(t)
	cable(t, n, "va", "vb")
	live := openIn(patient(t), t, n, Any, Filter{EtherType: frame.EtherType})
	if got := fmt.Sprint(live.Interfaces()); !strings.Contains(got, "{lo 1}") || !strings.Contains(got, "{va 1}") || !strings.Contains(got, "{vb 1}") {
		t.Errorf("at first there are %s", got)
	}
	both := func(a, b string, frames ...[]byte) (want []string) {
		for _, f := range frames {
			want = append(want, a+" "+string(f), b+" "+string(f))
		}
		return want
	}
	send(t, n, "va", own("one"), own("two"))
	if got, want := until(t, live, "vb", "two"), both("va", "vb", own("one"), own("two")); !slices.Equal(got, want) {
		t.Errorf("captured %q, want %q", got, want)
	}
	in(t, n, func() error {
		link, err := netlink.LinkByName("va")
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
	cable(t, n, "vc", "vd")
	send(t, n, "vd", own("three"))
	if got, want := until(t, live, "vc", "three"), both("vd", "vc", own("three")); !slices.Equal(got, want) {
		t.Errorf("after others came: %q, want %q", got, want)
	}
	if n := live.Dropped(); n != 0 {
		t.Errorf("%d dropped", n)
	}
}

// TestLivePutsTagsBack: the kernel takes tags of VLANs out of frames, and the capture has them,
// where they were; also two.
func TestLivePutsTagsBack(t *testing.T) {
	netns.Require(t)
	n := netns.New(t)
	cable(t, n, "va", "vb")
	for _, name := range []string{Any, "vb", "va"} {
		live := openIn(patient(t), t, n, name, Filter{EtherType: frame.EtherType})
		frames := [][]byte{
			own("tagged", 0x81, 0, 0x60, 5),
			own("by a provider", 0x88, 0xA8, 0, 7),
			own("twice", 0x88, 0xA8, 0, 7, 0x81, 0, 0, 5),
			append(own("", 0x81, 0, 0, 5)[:16], 8, 6, 0, 1), // ARP
			own(""), // no header of a frame
			own("end"),
		}
		send(t, n, "va", frames...)
		last := name
		if name == Any {
			last = "vb"
		}
		var want []string
		for i, f := range frames {
			if i == 3 {
				continue
			}
			for _, at := range []string{"va", "vb"} {
				if name == Any || name == at {
					want = append(want, at+" "+string(f))
				}
			}
		}
		if got := until(t, live, last, "end"); !slices.Equal(got, want) {
			t.Errorf("on %s: %q, want %q", name, got, want)
		}
		live.Close()
	}
}

// TestLiveFilter: the kernel drops what the filter does not take, and what a program of the
// user's drops; nothing of it is counted.
func TestLiveFilter(t *testing.T) {
	netns.Require(t)
	n := netns.New(t)
	cable(t, n, "va", "vb")
	all := wrapped(t)
	frames := [][]byte{
		all["udp4padded"].Data, all["udp6"].Data, all["udp4VLAN"].Data, all["ethernetVLAN"].Data,
		capturetest.PatchByte(all["udp4padded"].Data, 14+9, 6), // TCP
		all["udp4padded"].Data[:14+20],                         // truncated
	}
	program, err := ParseProgram(strings.NewReader(port40002))
	if err != nil {
		t.Fatal(err)
	}
	f := Filter{EtherType: frame.EtherType}
	for name, c := range map[string]struct {
		change func(*Filter)
		want   []int
	}{
		"all":           {func(*Filter) {}, []int{0, 1, 2, 3}},
		"port":          {func(f *Filter) { f.Ports = []uint16{40001} }, []int{0, 1, 2, 3}},
		"other port":    {func(f *Filter) { f.Ports = []uint16{1} }, []int{3}},
		"IPv4":          {func(f *Filter) { f.Ends = ends(t, "10.0.0.2") }, []int{0, 2}},
		"IPv6 and port": {func(f *Filter) { f.Ends = ends(t, "[fd00::1]:40001") }, []int{1}},
		"hardware":      {func(f *Filter) { f.Ends = ends(t, "02:00:00:00:00:02") }, []int{3}},
		"program":       {func(f *Filter) { f.Program = program }, []int{0, 1, 2}},
		"both":          {func(f *Filter) { f.Program, f.Ends = program, ends(t, "fd00::2") }, []int{1}},
		"many ports": {func(f *Filter) {
			for p := range uint16(900) {
				f.Ports = append(f.Ports, p+1)
			}
			f.Ports = append(f.Ports, 40002)
		}, []int{0, 1, 2, 3}},
	} {
		chosen := f
		c.change(&chosen)
		live := openIn(patient(t), t, n, "vb", chosen)
		send(t, n, "va", frames...)
		for _, want := range c.want {
			rec, err := live.Next()
			if err != nil || !bytes.Equal(rec.Data, frames[want]) {
				t.Errorf("%s: % x, %v; want frame %d", name, rec.Data, err, want)
			}
		}
		stats, err := live.conn.Stats()
		if err != nil || int(stats.Packets) != len(c.want) || stats.Drops != 0 {
			t.Errorf("%s: the kernel took %+v, %v; want %d", name, stats, err, len(c.want))
		}
		live.Close()
	}
}

// TestLiveWithoutLinkLayer: on an interface of bare IP, by its name and beside others.
func TestLiveWithoutLinkLayer(t *testing.T) {
	netns.Require(t)
	n := netns.New(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "tun0"
	tun := &netlink.Tuntap{LinkAttrs: attrs, Mode: unix.IFF_TUN, Flags: unix.IFF_NO_PI, Queues: 1, NonPersist: true}
	in(t, n, func() error {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0); err != nil {
			return err
		}
		if err := netlink.LinkAdd(tun); err != nil {
			return err
		}
		return setUp("tun0")
	})
	defer tun.Fds[0].Close()
	all := wrapped(t)
	for _, name := range []string{"tun0", Any} {
		live := openIn(patient(t), t, n, name, Filter{EtherType: frame.EtherType, Ports: []uint16{40002}})
		for _, packet := range [][]byte{
			capturetest.PatchByte(all["raw4"].Data, 9, 6), // TCP
			all["raw4"].Data, all["raw6"].Data,
		} {
			if _, err := tun.Fds[0].Write(packet); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range [][]byte{all["raw4"].Data, all["raw6"].Data} {
			rec, err := live.Next()
			if err != nil || rec.Name != "tun0" || rec.LinkType != linkRaw || !bytes.Equal(rec.Data, want) {
				t.Errorf("on %s: %+v, %v; want % x", name, rec, err, want)
			}
		}
		live.Close()
	}
}

// TestLiveEnds: one interface that goes down ends a capture of it, and says so; the end of the
// context ends one of all.
func TestLiveEnds(t *testing.T) {
	netns.Require(t)
	n := netns.New(t)
	cable(t, n, "va", "vb")
	ctx, cancel := context.WithCancel(patient(t))
	f := Filter{EtherType: frame.EtherType}
	one, all := openIn(ctx, t, n, "va", f), openIn(ctx, t, n, Any, f)
	in(t, n, func() error {
		link, err := netlink.LinkByName("va")
		if err != nil {
			return err
		}
		return netlink.LinkSetDown(link)
	})
	if _, err := one.Next(); err == nil || err.Error() != "interface va went down" {
		t.Errorf("error %v", err)
	}
	cancel()
	if _, err := all.Next(); err != io.EOF {
		t.Errorf("error %v", err)
	}
	n.In(func() {
		if _, err := OpenLive(t.Context(), "vb", Filter{Program: Program{{Op: 0xFFFF}, {Op: 6}}}, nil); !errors.Is(err, unix.EINVAL) {
			t.Errorf("a program that is none: %v", err)
		}
		if _, err := OpenLive(t.Context(), "va", f, nil); err == nil || !strings.Contains(err.Error(), "ip link set va up") {
			t.Errorf("error %v", err)
		}
	})
}

package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// ready waits until a server says its first line.
func (p *process) ready() *process {
	p.t.Helper()
	eventually(p.t, "it serves", func() bool { return strings.Contains(p.err.String(), "ing on ocpi-") })
	return p
}

// TestBenchTellsTheMTUOfTheWay: to a peer at another machine that of the route, to one at this
// machine that of its own interface, whatever address the client is at.
func TestBenchTellsTheMTUOfTheWay(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 4000)
	pair[0].SetRouteMTU(t, netns.IPv6(1), 2000)
	asProcess(t, "bench", "--serve", "udp:9100").startIn(pair[1]).ready()
	asProcess(t, "bench", "--serve", "udp:9100").startIn(pair[0]).ready()
	for _, c := range []struct {
		to    netip.Addr
		flags string
		mtu   float64
	}{
		{netns.IPv4(1), "", 4000},
		{netns.IPv4(1), "--reverse", 4000},
		{netns.IPv4(1), "--peers 3", 4000},
		{netns.IPv4(1), "--local udp:10.77.0.1", 4000},
		{netns.IPv4(1), "--mtu 1300", 1300},
		{netns.IPv6(1), "", 2000},
		{netns.IPv4(0), "", 65535},
		{netip.IPv6Loopback(), "", 65535},
	} {
		args := append([]string{"bench", "--json", "--seconds", "0.2", "--size", "64k", "--to", "udp:" + netip.AddrPortFrom(c.to, 9100).String()}, strings.Fields(c.flags)...)
		p := asProcess(t, args...).startIn(pair[0])
		var got map[string]any
		if code := p.code(); code != exitOK {
			t.Errorf("%v: code %d, %s", args, code, p.err.String())
		} else if err := json.Unmarshal([]byte(p.out.String()), &got); err != nil || got["mtu"] != c.mtu {
			t.Errorf("%v: %v, mtu %v, want %v", args, err, got["mtu"], c.mtu)
		}
	}
}

// TestPacketsThatTheWayDoesNotCarryAreRefused: at once, by a client as by a server, and with
// what carries them.
func TestPacketsThatTheWayDoesNotCarryAreRefused(t *testing.T) {
	t.Parallel()
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	pair[0].SetRouteMTU(t, netns.IPv6(1), 1400)
	const there = "ocpi-udp-rdma:10.77.0.2;9;4096.2.16"
	byDevice := func(which string) string {
		return fmt.Sprintf("MTU 9000: interface %s%s has MTU 1500: give no more, or raise it at both ends with: ip link set %[1]s mtu 9000\n", netns.Device, which)
	}
	reached := byDevice(", by which 10.77.0.2 is reached,")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"bench", "--mtu", "9000", "--to", there}, reached},
		{[]string{"bench", "--link", "--mtu", "9000", "--to", there}, reached},
		{[]string{"write", "--addr", "0", "--text", "x", "--to", there + "?mtu=9000"}, reached},
		{[]string{"ping", "--to", there, "--local", "udp?mtu=9000"}, reached},
		{[]string{"send", "/dev/null", there + "?mtu=9000"}, reached},
		{[]string{"ping", "--to", "ocpi-udp-rdma:[" + netns.IPv6(1).String() + "];9;4096.2.16", "--local", "udp?mtu=1500"}, "MTU 1500: the way to the peer carries 1400: give no more\n"},
		{[]string{"bench", "--mtu", "9000", "--serve", "udp:10.77.0.1"}, byDevice("")},
		{[]string{"bench", "--link", "--mtu", "9000", "--serve", "udp:10.77.0.1"}, byDevice("")},
		{[]string{"ping", "--serve", "udp:10.77.0.1?mtu=9000"}, byDevice("")},
		{[]string{"ping", "--link", "--serve", "udp:10.77.0.1?mtu=9000"}, byDevice("")},
		{[]string{"serve", "--accept", "any", "udp:10.77.0.1?mtu=9000"}, byDevice("")},
		{[]string{"listen", "udp:10.77.0.1?mtu=9000"}, byDevice("")},
	} {
		p := asProcess(t, c.args...).startIn(pair[0])
		if code := p.code(); code != exitUsage || !strings.HasSuffix(p.err.String(), c.want) {
			t.Errorf("%v: code %d, %q, want %q", c.args, code, p.err.String(), c.want)
		}
	}
	// A way inside this machine carries as much.
	code, out, stderr := runFor(t, t.Context(), "bench", "--mtu", "9000", "--seconds", "0.1", "--json")
	if code != exitOK || !strings.Contains(out, `"mtu":9000`) {
		t.Errorf("code %d, %s%s", code, out, stderr)
	}
}

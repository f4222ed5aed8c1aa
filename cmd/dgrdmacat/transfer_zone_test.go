package main

import (
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
)

// linkLocal returns an address of this machine that needs its interface, and that.
func linkLocal(t *testing.T) (ip netip.Addr, zone string) {
	t.Helper()
	all, _ := net.Interfaces()
	for _, x := range all {
		addrs, _ := x.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() && x.Flags&net.FlagUp != 0 {
				return p.Addr(), x.Name
			}
		}
	}
	t.Skip("no interface has a link-local address")
	return ip, ""
}

// TestZones: listen says that the interface in its string is of its own machine, and send says
// of one that is none here what it should be.
func TestZones(t *testing.T) {
	t.Parallel()
	ip, zone := linkLocal(t)
	l, url := listenCat(t, []string{"udp:[" + ip.WithZone(zone).String() + "]"})
	l.saysSoon(&l.stderr, "elsewhere")
	elsewhere := strings.Replace(url, "%"+zone, "%nosuch0", 1)
	startCat(t, []string{"send", elsewhere}, stdinFrom(nil)).end(exitError,
		`dgrdmacat send: dgrdma: connect peer \d+ at \S+: no interface nosuch0 here: the part behind % names an interface of this machine\n`)
	startCat(t, []string{"send", url}, stdinFrom([]byte("here"))).end(exitOK, saysSent(4))
	l.end(exitOK, `listening on \S+\n`+regexp.QuoteMeta(zone)+` is this machine's interface: a sender elsewhere puts its own behind the %\n`+
		`receiving from peer .*`+saysReceived(4))
	startCat(t, []string{"listen", "udp:[fe80::1%nosuch0]:9000"}).end(exitError,
		`dgrdmacat listen: .*: no interface nosuch0 here: the part behind % names an interface of this machine\n`)
}

package dgrdma

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/udp"
	"github.com/dgrdma/dgrdma/url"
)

// lookUpTime is how long a name is looked up where no context says it: twice what resolvers
// give a server by default (resolv.conf, timeout).
const lookUpTime = 10 * time.Second

// forLookUp returns a context for who has none.
func forLookUp() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), lookUpTime, fmt.Errorf("no answer within %v", lookUpTime))
}

// lookUp returns the addresses of a host, IPv4 before IPv6, and before those that need an
// interface and name none.
func lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err == nil && len(all) == 0 {
		err = &net.DNSError{Err: "it has no address", Name: host, IsNotFound: true}
	}
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, fmt.Errorf("dgrdma: no address of host %s: %w; is the name right? An IP address does in its place", host, err)
	}
	rank := func(ip netip.Addr) int {
		switch {
		case transport.Reaches(ip) != nil:
			return 2
		case ip.Is4():
			return 0
		}
		return 1
	}
	for i := range all {
		all[i] = all[i].Unmap()
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return cmp.Compare(rank(a), rank(b)) })
	return all, nil
}

// placed returns the endpoint with an address in place of its host's name, if it has one: the
// first one that suits.
func placed(u url.Endpoint, addrs []netip.Addr, suits func(netip.Addr) bool, otherwise string) (url.Endpoint, error) {
	i := slices.IndexFunc(addrs, suits)
	if i < 0 {
		var list []string
		for _, a := range addrs {
			list = append(list, a.String())
		}
		return u, fmt.Errorf("dgrdma: host %s has the address %s: %s", u.Host, strings.Join(list, ", "), otherwise)
	}
	u.Addr, u.Host = netip.AddrPortFrom(addrs[i], u.Addr.Port()), ""
	return u, nil
}

// ownPlace returns an endpoint of this machine with an address of it.
func ownPlace(u url.Endpoint) (url.Endpoint, error) {
	if u.Host == "" {
		return u, nil
	}
	ctx, cancel := forLookUp()
	defer cancel()
	addrs, err := lookUp(ctx, u.Host)
	if err != nil {
		return u, err
	}
	return placed(u, addrs, udp.Here, "no interface of this machine, where the endpoint is to be, has that; ip addr lists those there are")
}

// peerPlace returns a peer with an address that can be reached from here, which may be none.
func peerPlace(ctx context.Context, u url.Endpoint, here Addr) (url.Endpoint, error) {
	if u.Host == "" {
		return u, nil
	}
	addrs, err := lookUp(ctx, u.Host)
	if err != nil {
		return u, err
	}
	return placed(u, addrs, func(ip netip.Addr) bool {
		return here.IsZero() || here.Sends(transport.UDPAddr(netip.AddrPortFrom(ip, u.Addr.Port())))
	}, fmt.Sprintf("nothing can be sent to it from %v: open an endpoint at an address of the same kind (IPv4 or IPv6)", here))
}

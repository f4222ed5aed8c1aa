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

	"github.com/dgrdma/dgrdma/internal/refused"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/udp"
	"github.com/dgrdma/dgrdma/url"
)

// lookUpTime is how long a name is looked up where no context says it: twice what resolvers
// give a server by default (resolv.conf, timeout).
const lookUpTime = 10 * time.Second

// forLookUp returns a context for callers that have none.
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
		return nil, fmt.Errorf("dgrdma: %w", refused.Name(host, err))
	}
	rank := func(ip netip.Addr) int {
		switch {
		case transport.Usable(ip) != nil:
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

// fit returns those addresses of a host, at least one, of which why says nothing.
func fit(host string, addrs []netip.Addr, why func(netip.Addr) error) (fit []netip.Addr, err error) {
	unfit := &unfitError{host: host}
	for _, ip := range addrs {
		if err := why(ip); err != nil {
			unfit.addrs, unfit.why = append(unfit.addrs, ip), append(unfit.why, err)
			continue
		}
		fit = append(fit, ip)
	}
	if len(fit) == 0 {
		return nil, unfit
	}
	return fit, nil
}

// unfitError says of each address of a host why it will not do.
type unfitError struct {
	host  string
	addrs []netip.Addr
	why   []error
}

func (e *unfitError) Error() string {
	var list []string
	for i, ip := range e.addrs {
		list = append(list, fmt.Sprintf("%v (%v)", ip, e.why[i]))
	}
	return fmt.Sprintf("dgrdma: no address of host %s will do: it has %s", e.host, strings.Join(list, ", "))
}

func (e *unfitError) Unwrap() []error { return e.why }

// ownPlace returns an endpoint of this machine with an address of it.
func ownPlace(u url.Endpoint) (url.Endpoint, error) {
	if u.Host == "" {
		return u, nil
	}
	ctx, cancel := forLookUp()
	defer cancel()
	addrs, err := lookUp(ctx, u.Host)
	if err == nil {
		addrs, err = fit(u.Host, addrs, udp.Here)
	}
	if err != nil {
		return u, err
	}
	u.Addr, u.Host = netip.AddrPortFrom(addrs[0], u.Addr.Port()), ""
	return u, nil
}

// peerAddrs returns the addresses of a peer, of which there is more than one only where its host
// is named: then those that can be reached.
func peerAddrs(ctx context.Context, u url.Endpoint, reaches func(Addr) error) (all []Addr, err error) {
	if u.Scheme == url.Ether {
		return []Addr{transport.EtherAddr(u.MAC.As6())}, nil
	}
	addr := func(ip netip.Addr) Addr {
		return transport.UDPAddr(udp.AsReceived(netip.AddrPortFrom(ip, u.Addr.Port())))
	}
	if u.Host == "" {
		return []Addr{addr(u.Addr.Addr())}, nil
	}
	addrs, err := lookUp(ctx, u.Host)
	if err == nil {
		addrs, err = fit(u.Host, addrs, func(ip netip.Addr) error { return reaches(addr(ip)) })
	}
	for _, ip := range addrs {
		all = append(all, addr(ip))
	}
	return all, err
}

package dgrdma

import (
	"context"
	"fmt"

	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/url"
)

// ParsePeer reads a complete endpoint string into what Connect takes. The
// option profile names the kind of peer. Other options count where an endpoint is
// opened, and are refused here. The name of a host is looked up, for 10 s at most; of its
// addresses IPv4 ones come first. [Endpoint.LookupPeer] takes one that the endpoint reaches, and where the peer answers.
func ParsePeer(peerURL string) (Peer, error) {
	ctx, cancel := forLookUp()
	defer cancel()
	p, _, err := lookUpPeer(ctx, peerURL, transport.Receives)
	if err == nil && p.ID == 0 {
		return Peer{}, fmt.Errorf("dgrdma: endpoint string %q has no size, id and count of endpoints: "+
			"a peer's string ends in ;<size>.<id>.<max>, if the peer has memory or services to write to", peerURL)
	}
	return p, err
}

// lookUpPeer reads the string of a peer. Without an id in the string, the id is 0: the peer is to be asked.
// A host that is named may have more addresses than the peer's. reaches says why one will not do.
func lookUpPeer(ctx context.Context, peerURL string, reaches func(Addr) error) (p Peer, more []Addr, err error) {
	u, err := url.Parse(peerURL)
	if err != nil {
		return Peer{}, nil, err
	}
	if !u.Reachable() {
		return Peer{}, nil, fmt.Errorf("dgrdma: endpoint string %q has no address to send to", peerURL)
	}
	if !u.Complete() && u.Scheme != url.UDP {
		return Peer{}, nil, fmt.Errorf("dgrdma: endpoint string %q has no size, id and count of endpoints: over Ethernet, where endpoints share an address, "+
			"a peer's string ends in ;<size>.<id>.<max>", peerURL)
	}
	p = Peer{ID: EndpointID(u.ID), Size: u.Size}
	if p.Profile, err = profileOf(u); err != nil {
		return Peer{}, nil, err
	}
	at, err := peerAddrs(ctx, u, reaches)
	if err != nil {
		return Peer{}, nil, err
	}
	p.Addr = at[0]
	return p, at[1:], nil
}

// profileOf returns the kind of a peer, which is all that options of its string can say.
func profileOf(u url.Endpoint) (*Profile, error) {
	var of *Profile
	for key, value := range u.Options.All() {
		if key != settings.Profile.Option {
			return nil, fmt.Errorf("dgrdma: a peer's endpoint string says %s=%s, but has no option except %s: "+
				"others belong into the string with which the own endpoint is opened", key, value, settings.Profile.Option)
		}
		prof, err := ProfileByName(value, u.Scheme == url.UDP)
		if err != nil {
			return nil, err
		}
		of = &prof
	}
	return of, nil
}

package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"syscall"
)

// Ports that only root may have, from which servers take calls that they trust: 512 to 664 are those of well-known servers.
const (
	firstReserved = 665
	lastReserved  = 1023
)

// DialReserved connects from a port below 1024 if the process may have one, and otherwise from any port: a function for
// [ClientOptions.Dial]. Linux's NFS server answers ports below 1024 alone, unless an export has the option "insecure".
func DialReserved(ctx context.Context, network, address string) (net.Conn, error) {
	const n = lastReserved - firstReserved + 1
	first := rand.N(n)
	for i := range n {
		d := net.Dialer{LocalAddr: &net.TCPAddr{Port: firstReserved + (first+i)%n}}
		nc, err := d.DialContext(ctx, network, address)
		switch {
		case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, syscall.EADDRNOTAVAIL): // or a connection of that port ended just now
			continue
		case errors.Is(err, syscall.EACCES):
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		return nc, err
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

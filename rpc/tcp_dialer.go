package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"syscall"
)

// tcpDialer makes connections that have the same local port, one after the other, if the system allows it. Linux's NFS server looks for
// the reply to a call that comes again by the address and the port of its client.
type tcpDialer struct {
	port     int  // of the connection before; 0: there was none
	reserved bool // ClientOptions.ReservedPort
}

// Ports that only root may have, and from which servers take calls that they trust. Those below are well-known servers'.
const (
	firstReserved = 665
	lastReserved  = 1023
)

func (d *tcpDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var nc net.Conn
	var err error
	if d.port != 0 {
		nc, err = d.dialFrom(ctx, d.port, network, address)
	}
	if d.port == 0 || isTaken(err) {
		nc, err = d.dialFromAny(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	if local, ok := nc.LocalAddr().(*net.TCPAddr); ok {
		d.port = local.Port
	}
	return nc, nil
}

// isTaken reports whether a connection failed because its local port has another user, or had one a moment ago.
func isTaken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// dialFromAny connects from any port, which is a reserved one if that was asked for and this process may have it.
func (d *tcpDialer) dialFromAny(ctx context.Context, network, address string) (net.Conn, error) {
	const n = lastReserved - firstReserved + 1
	first := rand.N(n)
	for i := 0; d.reserved && i < n; i++ {
		nc, err := d.dialFrom(ctx, firstReserved+(first+i)%n, network, address)
		if errors.Is(err, syscall.EACCES) {
			break
		}
		if !isTaken(err) {
			return nc, err
		}
	}
	return d.dialFrom(ctx, 0, network, address)
}

// dialFrom connects from a port; 0: from one that has no other user. The socket is bound to that as well: a port that the system chooses
// when the socket connects may have other users, to other addresses, and cannot be asked for again.
func (d *tcpDialer) dialFrom(ctx context.Context, port int, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Control: reuseAddress, LocalAddr: &net.TCPAddr{Port: port}}
	nc, err := dialer.DialContext(ctx, network, address)
	var failed *net.OpError
	if errors.As(err, &failed) {
		failed.Source = nil // a port without an address tells a reader nothing
	}
	return nc, err
}

// reuseAddress allows the next connection to have the local port of this one.
func reuseAddress(_, _ string, c syscall.RawConn) (err error) {
	controlErr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	})
	return errors.Join(controlErr, err)
}

package rpc

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// tcpDialer makes connections that have the same local port, one after the other, if the system allows it. Linux's NFS server looks for
// the reply to a call that comes again by the address and the port of its client.
type tcpDialer struct {
	port int // of the connection before; 0: there was none
}

func (d *tcpDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := d.dialFrom(ctx, d.port, network, address)
	if d.port != 0 && (errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)) {
		nc, err = d.dialFrom(ctx, 0, network, address)
	}
	if err != nil {
		return nil, err
	}
	if local, ok := nc.LocalAddr().(*net.TCPAddr); ok {
		d.port = local.Port
	}
	return nc, nil
}

func (d *tcpDialer) dialFrom(ctx context.Context, port int, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Control: reuseAddress}
	if port != 0 {
		dialer.LocalAddr = &net.TCPAddr{Port: port}
	}
	return dialer.DialContext(ctx, network, address)
}

// reuseAddress allows the next connection to have the local port of this one.
func reuseAddress(_, _ string, c syscall.RawConn) (err error) {
	controlErr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	})
	return errors.Join(controlErr, err)
}

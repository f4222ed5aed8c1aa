package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/internal/refused"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/metrics"
	"github.com/dgrdma/dgrdma/metrics/watch"
	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
)

// metricsFlag is --metrics, for commands that take long. They call start before
// they open anything, and tell it of every endpoint or host that they open; it
// notices by itself when these are closed. Without the flag it does nothing.
type metricsFlag struct {
	addr      string
	collector *metrics.Collector // nil: nobody looks
}

func (m *metricsFlag) register(fs *flag.FlagSet) {
	fs.StringVar(&m.addr, "metrics", "", "serve Prometheus metrics, and what top shows, over HTTP on this `address`: "+
		"9100 is on loopback, :9100 at every address of this machine, as udp:9100 is, and 10.0.0.1:9100 at that one")
}

// endpoint shows an endpoint until it is closed.
func (m *metricsFlag) endpoint(e *dgrdma.Endpoint) {
	if m.collector != nil {
		m.collector.Add(watch.Endpoint(e))
	}
}

// host shows a host, its endpoint and its links until it is closed.
func (m *metricsFlag) host(h *link.Host) {
	if m.collector != nil {
		m.collector.Add(watch.Host(h))
	}
}

// rdma shows a host of RDMA over TCP until it is closed; at is where it serves, or whom it dials.
func (m *metricsFlag) rdma(h *verbs.Host, at tcpAddress) {
	if m.collector != nil {
		m.collector.AddRDMA(watch.RDMA(h, at.String()))
	}
}

// rpc shows a server of ONC RPC, and what it serves by NFS, until it is closed; at is where it serves.
func (m *metricsFlag) rpc(s *rpc.Server, of *nfs3.Server, at tcpAddress) {
	if m.collector != nil {
		m.collector.AddRPC(watch.RPC(s, of, at.String()))
	}
}

// stopWithin is how long stop waits for who is being answered. Arbitrary: an answer
// takes milliseconds.
const stopWithin = time.Second

// start begins to serve, if the flag was given, and says where. stop ends it, and
// everything that belongs to it.
func (m *metricsFlag) start(stderr io.Writer) (stop func(), err error) {
	if m.addr == "" {
		return func() {}, nil
	}
	addr, err := httpAddress(m.addr)
	if err != nil {
		return nil, badUsage("--metrics %s: %w", m.addr, err)
	}
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--metrics %s: the port is taken; give another one, or 0 for any that is free", m.addr)
	}
	if err != nil {
		return nil, fmt.Errorf("--metrics %s: %w", m.addr, refused.Bind(err, false))
	}
	m.collector = watch.New()
	said := newPeerLog(stderr) // what clients cause, as often as they like
	s := &http.Server{
		Handler:        m.collector.Handler(),
		ReadTimeout:    5 * time.Second,
		WriteTimeout:   30 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       log.New(said, "metrics: ", 0),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(m.collector.Places(l)) // ends with Shutdown
	}()
	at := l.Addr().(*net.TCPAddr)
	if at.IP.IsUnspecified() {
		fmt.Fprintf(stderr, "metrics on port %d of every address of this machine, %s; dgrdmacat top %d shows them\n", at.Port, metrics.TextPath, at.Port)
	} else {
		fmt.Fprintf(stderr, "metrics on http://%v%s; dgrdmacat top %v shows them\n", at, metrics.TextPath, at)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			s.Close()
		}
		<-served
		said.close()
	}, nil
}

// httpAddress completes an address of --metrics or top: a port by itself is on
// loopback, one behind a colon at every address.
func httpAddress(s string) (string, error) {
	if strings.Trim(s, "0123456789") == "" {
		s = "127.0.0.1:" + s
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", errors.New("need HOST:PORT, as in 127.0.0.1:9100, or PORT, or :PORT")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("port %q: need a number from 0 to 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}

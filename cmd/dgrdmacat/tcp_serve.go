package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/verbs/latency"
)

// tcpServer is a command that serves clients over TCP.
type tcpServer struct {
	at      tcpAddress
	once    bool // end after one client
	urlFile *urlFile
	doing   string // "answering"
	log     *peerLog
	metrics *metricsFlag
	// accept takes or rejects a client, and bounds how many there are; run serves one that was taken, and says what came
	// of it.
	accept func(ctx context.Context, h *verbs.Host, r *verbs.Request) (run func(ctx context.Context) (said string, err error), err error)
}

// mostTCPClients is how many are served at once.
const mostTCPClients = latency.MostClients

// serve serves until ctx ends, or one client was served.
func (s *tcpServer) serve(ctx context.Context) error {
	h, err := s.at.open()
	if err != nil {
		return err
	}
	defer h.Close()
	defer s.log.close()
	l, err := h.Listen(s.at.port)
	if err != nil {
		return err
	}
	at, others := reachedAt(l.Addr().(*net.TCPAddr))
	s.metrics.rdma(h, at)
	if err := s.urlFile.write(at.String()); err != nil {
		return err
	}
	fmt.Fprintf(s.log.to, "%s on %v\n%s", s.doing, at, others)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	var first sync.Once
	var served error
	for {
		r, err := l.Accept(serving)
		if err != nil {
			all.Wait()
		}
		switch {
		case err != nil && errors.As(served, new(untold)):
			return served
		case err != nil && ctx.Err() != nil && !s.once:
			return nil
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && serving.Err() != nil:
			return served
		case err != nil:
			return err
		}
		all.Go(func() {
			run, err := s.accept(serving, h, r)
			if err != nil {
				if s.toTell(serving, err) {
					s.log.rejected(r.RemoteAddr(), err)
				}
				return
			}
			said, err := run(serving)
			if s.once || errors.As(err, new(untold)) {
				first.Do(func() { served = err; stop() })
			} else if err != nil && s.toTell(serving, err) {
				said += fmt.Sprintf("; then %v", err)
			}
			s.log.tell(r.RemoteAddr(), said)
		})
	}
}

// toTell says of a client that went wrong whether to tell of it: not if it is us who end.
func (s *tcpServer) toTell(ctx context.Context, err error) bool {
	return ctx.Err() == nil || !errors.Is(err, context.Cause(ctx))
}

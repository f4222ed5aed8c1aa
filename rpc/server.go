package rpc

import (
	"context"
	"net"
)

// ServerOptions are what a [Server] can be told. The zero value is usual.
type ServerOptions struct {
	// Credits is how many calls of one connection are in work, or have replies that were not sent. 0: 64.
	Credits int
	// Calls is the same of all connections. 0: 1024.
	Calls int
	// Connections is how many there are. For one more the longest idle one is closed. 0: 4096.
	Connections int
	// MaxCall is the length of the longest call, with its header. 0: 1 MiB and 64 KiB.
	MaxCall int
	// Duplicates is how many replies are kept for calls that are sent again, of procedures that are not
	// idempotent. 0: 1024. Below 0: none, and such a call is carried out twice.
	Duplicates int
	// Auth decides whether a call is taken. It returns nil, an [AuthError], or another error for
	// SYSTEM_ERR. Without it calls with AUTH_NONE and AUTH_SYS are. It is not asked about NULL.
	Auth func(c *Call) error
	// Failed is told which calls were answered by SYSTEM_ERR, and why.
	Failed func(c *Call, err error)
}

// Server serves programs to clients, over any number of listeners.
type Server struct{}

// NewServer returns a server without programs. Without options they are the usual ones.
func NewServer(o *ServerOptions) *Server { return &Server{} }

// Handle has h carry out the calls of p. It is called before the server serves; several versions of a
// program are several programs here.
func (s *Server) Handle(p *Program, h Handler) {}

// ServeTCP accepts connections, and serves them until the server is closed, which it says by
// [ErrClosed], or the listener fails. It closes the listener.
func (s *Server) ServeTCP(l net.Listener) error { return ErrClosed }

// ServeConn serves one connection, as of TLS or of net.Pipe, until its end. It closes it.
func (s *Server) ServeConn(nc net.Conn) error { return ErrClosed }

// Shutdown closes the listeners, reads no more calls, answers those in work, and closes. When ctx ends
// before, it closes as Close does and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error { return nil }

// Close ends all connections, and waits until all handlers have returned.
func (s *Server) Close() error { return nil }

package verbs_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crypto "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// brought is a queue pair over a connection that is there, and its peer, which sends and reads what a test likes.
func brought(t *testing.T, here, there net.Conn, o *verbs.Options) (*verbs.QueuePair, *attacker) {
	t.Helper()
	a := &attacker{nc: there}
	answered := make(chan error, 1)
	go func() {
		r, err := mpa.Await(t.Context(), there, 0)
		if err == nil {
			a.conn, err = r.Accept(t.Context(), &mpa.Options{IRD: 8, ORD: 8, NoCRC: o != nil && o.NoCRC})
		}
		answered <- err
	}()
	q, err := openHost(t).Connect(t.Context(), here, o)
	if err := errors.Join(err, <-answered); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Abort)
	return q, a
}

// both are the ends of a connection of that network.
func both(t *testing.T, network, at string) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close() })
	return here, there
}

// overTLS are the ends of a connection of TLS.
func overTLS(t *testing.T) (here, there *tls.Conn) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crypto.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(crypto.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a, b := both(t, "tcp", "127.0.0.1:0")
	here = tls.Client(a, &tls.Config{InsecureSkipVerify: true})
	there = tls.Server(b, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}})
	shaken := make(chan error, 1)
	go func() { shaken <- there.Handshake() }()
	if err := errors.Join(here.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}
	return here, there
}

// A question behind the end of this side's direction has no answer, and nobody waits until that has left.
func TestCloseWithoutTCP(t *testing.T) {
	t.Parallel()
	here, there := both(t, "unix", filepath.Join(t.TempDir(), "socket"))
	q, a := brought(t, here, there, nil)
	closed := make(chan error, 1)
	go func() { closed <- q.Close() }()
	if _, err := io.Copy(io.Discard, there); err != nil { // until its end
		t.Fatal(err)
	}
	a.send(readRequest(1, verbs.Key{}))
	there.Close()
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// Of a peer behind TLS nobody knows what it has when it closes.
func TestPeerClosesTLS(t *testing.T) {
	t.Parallel()
	here, there := overTLS(t)
	q, _ := brought(t, here, there, nil)
	if err := q.Send(t.Context(), make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := there.CloseWrite(); err != nil { // it has read nothing of that
		t.Fatal(err)
	}
	<-q.Done()
	if err := q.Close(); !errors.Is(err, verbs.ErrPeerClosed) {
		t.Errorf("Close: %v, want %v", err, verbs.ErrPeerClosed)
	}
}

// A peer behind TLS that takes no answers does not hold Shutdown for longer than its context.
func TestCloseTLSUnread(t *testing.T) {
	t.Parallel()
	here, there := overTLS(t)
	h := openHost(t)
	r, err := h.Register(make([]byte, 32<<20), verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	q, a := brought(t, here, there, &verbs.Options{Domain: h.Domain()})
	if err := q.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- q.Shutdown(ctx) }()
	time.Sleep(100 * time.Millisecond) // its question is under way
	a.send(readRequest(1, r.Key()))
	time.Sleep(100 * time.Millisecond) // the answer is, too
	a.send(tagged(0x42, 0x42, 0, nil)) // this side may end its direction
	select {
	case err := <-closed:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		}
	case <-time.After(20 * time.Second):
		there.Close()
		t.Errorf("Shutdown waits for the peer: %v", <-closed)
	}
}

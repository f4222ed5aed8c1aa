// Quic measures a QUIC stream between two ends, for comparison with dgrdmacat bench: the same
// memory is moved from one to the other, over and over.
//
//	go run -C tests/quic . -serve 10.0.0.2:7100     # on one machine, for one client
//	go run -C tests/quic . -to 10.0.0.2:7100        # on the other
//
// The client prints one JSON object.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	block    = 1 << 20 // bytes of one Read and Write
	protocol = "dgrdma-compare"
	patience = 10 * time.Second // for a client, and for the last byte
)

func main() {
	serve := flag.String("serve", "", "`address` to receive on, from one client")
	to := flag.String("to", "", "`address` to send to")
	seconds := flag.Float64("seconds", 1, "how long to send")
	bytes := flag.Int("bytes", 0, "how many to send, in place of -seconds; 0: as long as those last")
	mib := flag.Int("mib", 4, "MiB of memory at each end")
	flag.Parse()
	var err error
	switch {
	case flag.NArg() > 0 || (*serve == "") == (*to == ""):
		err = errors.New("give -serve or -to, and no more arguments")
	case *mib < 1 || *mib > 4096 || !(*seconds > 0 && *seconds <= 86400):
		err = errors.New("need -mib 1 to 4096, and -seconds above 0, at most 86400")
	case *bytes < 0:
		err = errors.New("need -bytes 0 or more")
	case *serve != "":
		err = receive(*serve, *mib<<20)
	default:
		err = send(*to, *mib<<20, time.Duration(*seconds*float64(time.Second)), *bytes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quic:", err)
		os.Exit(1)
	}
}

// receive reads a client's stream to its end, and says that it has.
func receive(at string, memory int) error {
	cfg, err := certified()
	if err != nil {
		return err
	}
	l, err := quic.ListenAddr(at, cfg, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	s, err := c.AcceptStream(ctx)
	if err != nil {
		return err
	}
	for b, at := make([]byte, memory), 0; ; {
		n, err := s.Read(b[at:min(at+block, len(b))])
		if at += n; at == len(b) {
			at = 0
		}
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	<-c.Context().Done() // the client has heard that
	return nil
}

// send writes for that long, or so many bytes if that is not 0, and counts until the other side has it all.
func send(to string, memory int, long time.Duration, bytes int) error {
	dialed := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), long+patience)
	defer cancel()
	c, err := quic.DialAddr(ctx, to, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}, nil)
	if err != nil {
		return err
	}
	defer c.CloseWithError(0, "")
	s, err := c.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	b := make([]byte, memory)
	for i := range b {
		b[i] = byte(i >> 9) // untouched pages are all one, which stays in the cache
	}
	sent, began := 0, time.Now()
	for at := 0; time.Since(began) < long && (bytes == 0 || sent < bytes); at = (at + block) % len(b) {
		size := block
		if bytes > 0 {
			size = min(size, bytes-sent)
		}
		n, err := s.Write(b[at : at+size])
		if err != nil {
			return err
		}
		sent += n
	}
	if err := s.Close(); err != nil {
		return err
	}
	s.SetReadDeadline(time.Now().Add(patience))
	if _, err := s.Read(make([]byte, 1)); err != io.EOF {
		return fmt.Errorf("the other side has not read all: %w", err)
	}
	took := time.Since(began).Seconds()
	if bytes > 0 { // what is asked is how long that takes from nothing
		took = time.Since(dialed).Seconds()
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"protocol": "quic", "bytes": sent, "seconds": took, "mb_per_s": float64(sent) / 1e6 / took})
}

// certified returns a server's configuration with a certificate that nobody need trust.
func certified() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}, NextProtos: []string{protocol}}, nil
}

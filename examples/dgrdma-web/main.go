// Web is a web server over DG/RDMA, and a client: net/http as it is, over connections of
// package netconn.
//
//	dgrdma-web serve DIRECTORY [CERTIFICATE]          prints where it is, and serves the files there
//	dgrdma-web get ENDPOINT-STRING PATH [CERTIFICATE] writes what is at that path to standard output
//
// With CERTIFICATE both speak TLS: the server makes a key for this run, and writes its
// certificate to that file, by which the client knows it.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/link/netconn"
)

// name is what the client calls the server: that of the certificate, and of the host in URLs.
const name = "server"

// What a client may take of the server before its request is there, and after that. Arbitrary.
const (
	longestHeader = 64 << 10
	slowestHeader = 10 * time.Second
	idle          = time.Minute
)

const usage = "usage: dgrdma-web serve DIRECTORY [CERTIFICATE] | dgrdma-web get ENDPOINT-STRING PATH [CERTIFICATE]"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := errors.New(usage)
	args := append(os.Args[1:], "")
	switch {
	case len(args) == 2 && args[0] == "-h":
		_, err = fmt.Println(usage)
	case len(args) > 2 && len(args) < 5 && args[0] == "serve":
		err = serve(ctx, "udp", args[1], args[2], os.Stdout)
	case len(args) > 3 && len(args) < 6 && args[0] == "get":
		err = get(ctx, args[1], args[2], args[3], os.Stdout)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "dgrdma-web:", err)
		os.Exit(1)
	}
}

// serve serves a directory until the context is done, and what is under way then. Where it
// is, it writes to out.
func serve(ctx context.Context, local, directory, certificate string, out io.Writer) error {
	files, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer files.Close()
	host, err := link.Open(local, nil)
	if err != nil {
		return err
	}
	defer host.Shutdown(context.Background()) // when what the last connections carried has arrived
	server := http.Server{Handler: http.FileServerFS(files.FS()), ReadHeaderTimeout: slowestHeader, IdleTimeout: idle, MaxHeaderBytes: longestHeader}
	port, run := "80", server.Serve
	if certificate != "" {
		key, err := newKey(certificate)
		if err != nil {
			return err
		}
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{key}}
		port, run = "443", func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	l, err := netconn.Listen(host, port, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- run(l) }()
	fmt.Fprintln(out, host.URL())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return server.Shutdown(grace)
	}
}

// get writes what a server has at a path.
func get(ctx context.Context, server, path, certificate string, out io.Writer) error {
	host, err := link.Open("udp", nil)
	if err != nil {
		return err
	}
	defer host.Shutdown(ctx)
	dialer := &netconn.Dialer{Host: host, Lookup: func(context.Context, string) (string, error) { return server, nil }}
	transport := &http.Transport{DialContext: dialer.DialContext}
	defer transport.CloseIdleConnections()
	scheme := "http"
	if certificate != "" {
		scheme = "https"
		if transport.TLSClientConfig, err = trust(certificate); err != nil {
			return err
		}
		transport.ForceAttemptHTTP2 = true
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+name+path, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	_, err = io.Copy(out, answer.Body)
	return err
}

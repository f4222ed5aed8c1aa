package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/link/netconn"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) {
	fixture.EndHangs()
	m.Run()
}

// start serves a directory until the test ends, and returns where.
func start(t *testing.T, directory, certificate string) string {
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, "udp:127.0.0.1", directory, certificate, in) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

func TestWeb(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			fixture.NoGoroutineLeft(t)
			dir := t.TempDir()
			want := fixture.RandomBytes(1, 1_000_000)
			if err := os.WriteFile(filepath.Join(dir, "file"), want, 0o600); err != nil {
				t.Fatal(err)
			}
			certificate := ""
			if scheme == "https" {
				certificate = filepath.Join(t.TempDir(), "certificate")
			}
			url := start(t, dir, certificate)
			for range 3 {
				var got bytes.Buffer
				if err := get(t.Context(), url, "/file", certificate, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
					t.Errorf("%d bytes of %d, %v", got.Len(), len(want), err)
				}
			}
			if err := get(t.Context(), url, "/none", certificate, io.Discard); err == nil || err.Error() != "/none: 404 Not Found" {
				t.Errorf("what is not there: %v", err)
			}
		})
	}
}

// TestLongHeader checks that a request whose header has no end is answered as too large, and not kept.
func TestLongHeader(t *testing.T) {
	url := start(t, t.TempDir(), "")
	host, err := link.Open("udp:127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	dialer := &netconn.Dialer{Host: host, Lookup: func(context.Context, string) (string, error) { return url, nil }}
	c, err := dialer.DialContext(t.Context(), "tcp", name+":80")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	go io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nA: "+strings.Repeat("a", 4*longestHeader)+"\r\n\r\n")
	if line, err := bufio.NewReader(c).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 431 ") {
		t.Errorf("%q, %v", line, err)
	}
}

// TestImpostor: a client takes no other server than the one whose certificate it has.
func TestImpostor(t *testing.T) {
	dir := t.TempDir()
	right, wrong := filepath.Join(dir, "right"), filepath.Join(dir, "wrong")
	if _, err := newKey(right); err != nil {
		t.Fatal(err)
	}
	var unknown x509.UnknownAuthorityError
	if err := get(t.Context(), start(t, dir, wrong), "/right", right, io.Discard); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
}

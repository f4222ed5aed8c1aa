package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/metrics"
	"github.com/dgrdma/dgrdma/url"
)

const (
	lookWithin = 5 * time.Second
	// largestView bounds what is read, and mostParts how many objects and elements of lists are in it: each takes some
	// 500 bytes here, and three bytes there. 65535 peers are 46 MB and 262,140 parts, as many links not more.
	largestView = 64 << 20
	mostParts   = 512 << 10
	// largestHeader and longestReason bound what else a server may say. Arbitrary.
	largestHeader = 64 << 10
	longestReason = 200
)

// viewSource fetches views. They are JSON and not Prometheus' text, which
// Prometheus' expfmt would read: that text has no states, no reasons for failing, and no
// clock to make rates of, and top --json passes the object on.
type viewSource struct {
	url    string
	host   string // host and port, as a person would say it
	client *http.Client
}

// topLook is one answer of a source.
type topLook struct {
	view *metrics.View
	body []byte
}

// newViewSource takes an address as --metrics takes or prints it.
func newViewSource(s string) (*viewSource, error) {
	u := &neturl.URL{Scheme: "http", Path: metrics.ViewPath}
	if strings.Contains(s, "://") {
		given, err := neturl.Parse(s)
		if err != nil || given.Host == "" || given.Scheme != "http" && given.Scheme != "https" {
			return nil, badUsage("%s: need http://HOST:PORT", s)
		}
		u = given
		if u.Path == "" || u.Path == "/" || u.Path == metrics.TextPath {
			u.Path = metrics.ViewPath
		}
	} else {
		if _, wrong := url.Parse(s); wrong == nil || isTCP(s) {
			return nil, badUsage("%s: that is where RDMA goes, and top asks over HTTP: give the address of --metrics, such as 9100", s)
		}
		addr, err := httpAddress(s)
		if err != nil {
			return nil, badUsage("%s: %w", s, err)
		}
		if u.Host = addr; strings.HasPrefix(addr, ":") {
			u.Host = "127.0.0.1" + addr // one of every address
		}
	}
	return &viewSource{
		url: u.String(), host: u.Host,
		client: &http.Client{
			Timeout:       lookWithin,
			Transport:     &http.Transport{MaxIdleConnsPerHost: 1, MaxResponseHeaderBytes: largestHeader},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func (s *viewSource) close() { s.client.CloseIdleConnections() }

// look asks for a view.
func (s *viewSource) look(ctx context.Context) (topLook, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", s.url, nil)
	if err != nil {
		return topLook{}, badUsage("%s: %w", s.url, err)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return topLook{}, s.explain(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return topLook{}, s.other(answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, largestView+1))
	switch {
	case err != nil:
		return topLook{}, s.explain(ctx, err)
	case len(body) > largestView:
		return topLook{}, s.other(fmt.Sprintf("more than %d bytes", largestView))
	case partsOf(body) > mostParts:
		return topLook{}, s.other(fmt.Sprintf("more than %d objects", mostParts))
	}
	l := topLook{new(metrics.View), body}
	switch err := json.Unmarshal(body, l.view); {
	case l.view.Format == 0:
		return topLook{}, s.other("no view")
	case l.view.Format != metrics.Format:
		return topLook{}, fmt.Errorf("%s serves views of format %d, this dgrdmacat knows %d: use one as old as the program",
			s.host, l.view.Format, metrics.Format)
	case err != nil:
		return topLook{}, s.other(err.Error())
	}
	return l, nil
}

// explain says why nobody answered.
func (s *viewSource) explain(ctx context.Context, err error) error {
	var timeout net.Error
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s; start what is to be watched with --metrics %s", s.host, s.host)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s does not answer within %v", s.host, lookWithin)
	}
	var wrapped *neturl.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which the user knows
	}
	if resetTCP(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if call := (*os.SyscallError)(nil); errors.As(err, &call) {
			err = call.Err
		}
		return fmt.Errorf("%s ended the connection before it had answered (%w): was the program stopped, or is that a port where RDMA goes, and not its --metrics?", s.host, err)
	}
	if !errors.As(err, new(*net.OpError)) { // then something came, and it was not that
		return s.other("it does not speak HTTP")
	}
	return fmt.Errorf("look at %s: %w", s.host, err)
}

// other says that something else answers there.
func (s *viewSource) other(how string) error {
	return fmt.Errorf("what answers at %s is not a program with --metrics: %s", s.url, printableASCII(cutTo(how, longestReason)))
}

// deepestView is more than lists and objects of a view are within each other.
const deepestView = 32

// partsOf counts the objects, the lists and the elements of lists of a JSON text. Of what is too deep to be a view there are too many.
func partsOf(b []byte) (n int) {
	lists, depth := uint64(0), 0 // a bit for each level, the innermost lowest
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			if depth++; depth > deepestView {
				return mostParts + 1
			}
			lists <<= 1
			if b[i] == '[' {
				lists |= 1
			}
			n++
		case ']', '}':
			depth--
			lists >>= 1
		case ',':
			n += int(lists & 1)
		}
	}
	return n
}

// Counter gives out numbers, none of them twice: a server offers eight bytes, and its clients add 1 to them by FetchAdd,
// whose answer is the number that was there. The server's program makes no call for it, and needs no lock.
//
//	dgrdma-counter serve           in one terminal: listens at port 7482 of this machine's loopback interface; ^C says the count
//	dgrdma-counter take            in others: takes one number, and prints it
//	dgrdma-counter -n 1000 take    takes a thousand, one after the other
//
// Between machines the server is told its address, dgrdma-counter -at tcp:10.0.0.1 serve, and the clients where it is,
// dgrdma-counter -server tcp:10.0.0.1:7482 take.
//
// FetchAdd is of RFC 7306. Nothing on the wire tells whether the peer knows it, so both sides name verbs.Atomics. When a client
// is lost, nobody else notices. It may have asked for a number whose answer nobody heard: that number is
// missing, and no other.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/verbs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	set := flag.NewFlagSet("dgrdma-counter", flag.ExitOnError)
	at := set.String("at", "tcp:127.0.0.1", "serve at this address of the machine")
	port := set.String("port", "7482", "serve at this port; 0: any")
	where := set.String("server", "tcp:127.0.0.1:7482", "where the server is")
	n := set.Int("n", 1, "take so many numbers")
	set.BoolFunc("h", "print this", func(string) error {
		set.SetOutput(os.Stdout)
		set.Usage()
		os.Exit(0)
		return nil
	})
	set.Usage = func() {
		fmt.Fprintln(set.Output(), "usage: dgrdma-counter [flags] serve | take")
		set.PrintDefaults()
	}
	set.Parse(os.Args[1:])
	err := check(set)
	switch {
	case err != nil:
	case set.Arg(0) == "serve":
		err = serve(ctx, *at, *port, os.Stdout)
	default:
		err = take(ctx, *where, *n, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dgrdma-counter:", err)
		os.Exit(1)
	}
}

// belongs says which flags serve and take have.
var belongs = map[string]string{"at": "serve", "port": "serve", "server": "take", "n": "take"}

// check refuses what a command line asks for in vain.
func check(set *flag.FlagSet) (err error) {
	role := set.Arg(0)
	if role != "serve" && role != "take" {
		set.Usage()
		return errors.New("what is to be done?")
	}
	if n := set.NArg() - 1; n > 0 {
		if strings.HasPrefix(set.Arg(1), "-") {
			return fmt.Errorf("%s: what is %q for? Flags come before %[1]s", role, set.Arg(1))
		}
		return fmt.Errorf("%s takes no argument, and has %d: dgrdma-counter [flags] %[1]s", role, n)
	}
	set.Visit(func(f *flag.Flag) {
		if of := belongs[f.Name]; of != role {
			err = fmt.Errorf("-%s belongs to %s, and means nothing to %s", f.Name, of, role)
		}
	})
	if n := set.Lookup("n").Value.(flag.Getter).Get().(int); err == nil && n < 1 {
		err = fmt.Errorf("-n %d: need 1 or more", n)
	}
	return err
}

// mostClients is how many are connected at once: any program that reaches the port could take all memory otherwise. Arbitrary.
const mostClients = 256

// serve offers the counter until ctx ends, and says how far it came.
func serve(ctx context.Context, at, port string, out io.Writer) error {
	host, err := verbs.Open(at)
	if err != nil {
		return err
	}
	defer host.Close()
	region, err := host.Register(make([]byte, 8), verbs.RemoteAtomic)
	if err != nil {
		return err
	}
	count, err := region.Word(0)
	if err != nil {
		return err
	}
	l, err := host.Listen(port)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "serving on", l)
	places := make(chan struct{}, mostClients)
	for {
		request, err := l.Accept(ctx)
		if ctx.Err() != nil {
			region.Invalidate() // from here on it does not change
			_, err := fmt.Fprintln(out, "count", atomic.LoadUint64(count))
			return err
		}
		if err != nil {
			return err
		}
		select {
		case places <- struct{}{}:
		default:
			request.TurnAway(fmt.Appendf(nil, "%d clients are there already: try again later", mostClients))
			continue
		}
		go func() { // one that does not answer holds up no other
			defer func() { <-places }()
			qp, err := request.Accept(ctx, &verbs.Options{Private: region.Key().Bytes(), Extensions: verbs.Atomics})
			if err != nil {
				fmt.Fprintln(os.Stderr, "dgrdma-counter:", err)
				return
			}
			<-qp.Done()
			if err := qp.Err(); !errors.Is(err, verbs.ErrPeerClosed) && !errors.Is(err, verbs.ErrClosed) {
				fmt.Fprintln(os.Stderr, "dgrdma-counter:", err) // a client is lost, and the others go on
			}
		}()
	}
}

// take takes n numbers, and prints each when it is there.
func take(ctx context.Context, server string, n int, out io.Writer) error {
	host, err := verbs.Open("tcp")
	if err != nil {
		return err
	}
	defer host.Close()
	qp, err := host.Dial(ctx, server, &verbs.Options{Extensions: verbs.Atomics})
	if err != nil {
		return err
	}
	defer qp.Close() // what was taken is taken, whether or not the server is there to the end
	key, err := verbs.ParseKey(qp.Private())
	if err != nil {
		return err
	}
	for range n {
		number, err := qp.FetchAdd(ctx, key, 0, 1)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, number); err != nil {
			return err
		}
	}
	return nil
}

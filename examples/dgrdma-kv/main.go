// Kv is a key-value store whose clients get values without the server: its table is registered memory, of which
// they read what may have their key by one Read. What changes the table the server does itself, as it is asked to by
// messages. It shows one-sided Reads of memory that changes meanwhile, messages with an answer of immediate data, one
// completion queue for all peers, and private data that says what a connection is for.
//
//	dgrdma-kv serve                    in one terminal: listens at port 7481 of this machine's loopback interface
//	dgrdma-kv put colour blue          in another one
//	dgrdma-kv get colour
//	dgrdma-kv delete colour
//
// Between machines the server is told its address, dgrdma-kv -at tcp:10.0.0.1 serve, and the clients where it is,
// dgrdma-kv -server tcp:10.0.0.1:7481 get colour. The server does not ask for a name or a key: any program that reaches the port may change the table.
//
// A Read is not atomic: it may see half of what the server writes. Each entry has a checksum, and who finds a wrong one
// reads again. All entries that may have a key are side by side, so that it takes one Read to know that none has.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "dgrdma-kv:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	set := flag.NewFlagSet("dgrdma-kv", flag.ExitOnError)
	at := set.String("at", "tcp:127.0.0.1", "serve at this address of the machine")
	port := set.String("port", "7481", "serve at this port; 0: any")
	entries := set.Int("entries", 1<<16, "serve a table of so many entries, 512 bytes each")
	where := set.String("server", "tcp:127.0.0.1:7481", "where the server is")
	set.BoolFunc("h", "print this", func(string) error {
		set.SetOutput(os.Stdout)
		set.Usage()
		os.Exit(0)
		return nil
	})
	set.Usage = func() {
		fmt.Fprintln(set.Output(), "usage: dgrdma-kv [flags] serve | put KEY VALUE | get KEY | delete KEY")
		set.PrintDefaults()
	}
	set.Parse(args)
	args = set.Args()
	if len(args) == 0 || needs[args[0]] == nil {
		set.Usage()
		return errors.New("what is to be done?")
	}
	if what, has, want := args[0], args[1:], needs[args[0]]; len(has) != len(want) {
		if i := slices.IndexFunc(has, func(a string) bool { return strings.HasPrefix(a, "-") }); i >= 0 {
			return fmt.Errorf("%s: what is %q for? Flags come before %[1]s", what, has[i])
		}
		return fmt.Errorf("%s takes %s, and has %d: dgrdma-kv %s", what, count(len(want)), len(has), strings.Join(append([]string{what}, want...), " "))
	}
	if err := check(set, args[0] == "serve"); err != nil {
		return err
	}
	if args[0] == "serve" {
		return serve(ctx, *at, *port, *entries, out)
	}
	c, err := Dial(ctx, *where)
	if err != nil {
		return err
	}
	defer c.Close()
	switch args[0] {
	case "put":
		return c.Put(ctx, args[1], []byte(args[2]))
	case "delete":
		return c.Delete(ctx, args[1])
	}
	value, err := c.Get(ctx, args[1])
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", value)
	}
	return err
}

// needs are the arguments of each command.
var needs = map[string][]string{"serve": {}, "put": {"KEY", "VALUE"}, "get": {"KEY"}, "delete": {"KEY"}}

// check refuses flags that mean nothing to the server, or to a client.
func check(set *flag.FlagSet, serves bool) (err error) {
	set.Visit(func(f *flag.Flag) {
		switch {
		case f.Name == "server" && serves:
			err = errors.New("-server belongs to put, get and delete, and means nothing to serve")
		case f.Name != "server" && !serves:
			err = fmt.Errorf("-%s belongs to serve, and means nothing to put, get and delete", f.Name)
		}
	})
	return err
}

// count says of how many arguments it is spoken.
func count(n int) string {
	return [...]string{"no argument", "one argument", "two arguments"}[n]
}

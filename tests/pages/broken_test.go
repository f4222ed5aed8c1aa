package pages

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestBrokenPagesAreNoticed: every kind of mistake that a page can have fails, and says what
// it is.
func TestBrokenPagesAreNoticed(t *testing.T) {
	const demo = "```sh\ndgrdmacat demo --size 1M\n```\n"
	for _, c := range []struct{ mistake, text, says string }{
		{"no mistake", demo, ""},
		{"an unknown flag", "```sh\ndgrdmacat demo --sise 1\n```\n", "there is no flag --sise"},
		{"a command that is not there", "```sh\ndgrdmacut demo\n```\n", "dgrdmacut: command not found"},
		{"a command that fails within a pipe", "```sh\ndgrdmacat decode nothing.pcap | head\n```\n", "nothing.pcap: no such file"},
		{"a variable of another page", "```sh\necho \"$CLONE\"\n```\n", "CLONE: unbound variable"},
		{"what is exported in another terminal", "```sh\nexport SIZE=1M\n# terminal 2\ndgrdmacat demo --size $SIZE\n```\n", "SIZE: unbound variable"},
		{"what is exported in the same terminal", "```sh\n# in the clone\nexport SIZE=1M\n```\n```sh\ndgrdmacat demo --size $SIZE\n```\n", ""},
		{"a file of the clone", "```sh\ncat go.mod\n```\n", "go.mod: No such file"},
		{"other output", demo + "```output\nmoved  1 MB in 1 ms, 1000 MB/s, no byte verified\n...\n```\n", "no byte verified"},
		{"less output", demo + "```output\nmoved  1.0 MB in 1.2ms, 890 MB/s, every byte verified\n```\n", "the page does not show what is printed: network"},
		{"more output", "```sh\necho one\n```\n```output\none\ntwo\n```\n", "a line that is not printed: two"},
		{"another address", "```sh\necho 0x40 40\n```\n```output\n0x41 40\n```\n", "printed is"},
		{"other numbers", "```sh\necho 12.5 us, 2 frames, 3 KiB\n```\n```output\n900 ns,  1 frame, 4.1 MiB\n```\n", ""},
		{"another id at the same place", "```sh\necho peer 7 at 10.0.0.2:9000\n```\n```output\npeer 8 at 10.0.0.2:9000\n```\n", "printed is      peer 7"},
		{"another id in the string of the same place", "```sh\necho \"on ocpi-udp-rdma:10.0.0.2;9000;64.7.16\"\n```\n```output\non ocpi-udp-rdma:10.0.0.2;9000;64.8.16\n```\n", ";64.7.16"},
		{"the id of a place of another run", "```sh\necho peer 7 at 10.0.0.2:40000\n```\n```output\npeer 8 at 10.0.0.2:40001\n```\n", ""},
		{"output of another terminal", demo + "```output\n# terminal 2\n...\n```\n", "terminal 2, where nothing was typed"},
		{"output of nothing", "```output\n```\n", "No block of commands"},
		{"a foreground command that ^C is to end", "```sh\ndgrdmacat serve --accept any udp:127.0.0.1  # until ^C\n```\n", ""},
		{"^C for what ends by itself", "```sh\necho done; exit 3  # until ^C\n```\n", "echo done; exit 3"},
		{"an unknown kind of block", "```bash\ntrue\n```\n", `the kind "bash"`},
		{"no kind of block", "```\ntrue\n```\n", `the kind ""`},
		{"an indented block", "So:\n\n    dgrdmacat demo\n", "an indented block"},
		{"a block without end", "```sh\ntrue\n", "does not end"},
		{"a command that no test runs", "```console\ndgrdmacat demo\n```\n", "withheld does not say why"},
		{"a picture with a command", "```text\n$ dgrdmacat demo\n```\n", "a picture with a command"},
		{"a test that is not there", "```console\ngo test ./tests/wires -run TestSwich -seed 7\n```\n", "nothing there is called TestSwich"},
		{"a flag of no test", "```console\ngo test ./tests -run Property -sheedules 7\n```\n", "no test there has the flag -sheedules"},
		{"a package that is not there", "```console\ngo test ./test/wires\n```\n", "is no package"},
		{"a program that does not compile", program("\tfmt.Println(nothing)\n") + run, "undefined: nothing"},
		{"a program that fails", program("\tfmt.Println(os.Open(\"nothing\"))\n\tos.Exit(1)\n") + run, "open nothing: no such file"},
		{"a program that no block runs", program("\tfmt.Println(os.Args)\n"), "no block runs this program"},
		{"a program that gofmt would change", program("  fmt.Println(os.Args)\n") + run, "gofmt would change"},
		{"a program without a name", "```go\npackage main\n```\n", "names its file"},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			besideOthers(t)
			p := parse("page.md", c.text)
			_, faults := p.unrun()
			_, err := p.follow(t)
			err = errors.Join(append(faults, err)...)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func program(body string) string {
	return "```go\n// try/it/main.go\npackage main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n" + body + "}\n```\n"
}

const run = "```sh\ncd try\ngo mod init try\ngo run ./it\n```\n"

// TestMutatedPagesAreNoticed: with one letter of its command line changed, each of the
// README's own blocks that runs dgrdmacat fails.
func TestMutatedPagesAreNoticed(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, blocks, ok := strings.Cut(string(text), "## Ten minutes\n")
	blocks, _, ok2 := strings.Cut(blocks, "## The library\n")
	if !ok || !ok2 {
		t.Fatal("the README has no ten minutes")
	}
	for _, change := range []struct{ from, to string }{
		{"listen -o copy.bin", "listen -u copy.bin"},
		{`"$(cat serve.url)"`, `"$(cat serve.ur)"`},
		{"--until 0x40=1 ", "--until 0x40:1 "},
		{"--flag-addr 0x40\n", "--flag-adr 0x40\n"},
		{"bench --seconds 1 ", "bench --seconds 1x "},
		{"udp-loss7.pcap\" | head", "udp-loss8.pcap\" | head"},
		{"acknowledged by peer", "acknowledged by a peer"},
		{"then 0x1 at 0x200", "then 0x2 at 0x200"},
	} {
		t.Run(fmt.Sprint(change.to), func(t *testing.T) {
			besideOthers(t)
			if !strings.Contains(blocks, change.from) {
				t.Fatalf("the README has no %q", change.from)
			}
			p := parse("README.md", keep(strings.Replace(blocks, change.from, change.to, 1), change.to))
			if len(p.blocks) == 0 {
				t.Fatal("nothing is left of the page")
			}
			if _, err := p.follow(t); err == nil {
				t.Error("nobody noticed")
			}
		})
	}
}

// keep leaves of a page the block in which something is, what is to be there before, and the
// output that belongs to it.
func keep(text, what string) string {
	paragraphs := strings.Split(text, "\n**")
	for _, p := range paragraphs {
		if strings.Contains(p, what) {
			return "```sh\n# in the clone\nexport CLONE=$PWD\n```\n" + p
		}
	}
	return ""
}

package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// Numbers, times and sizes differ from run to run; words, and numbers in hexadecimal, do not.
var varying = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b[0-9a-f]{40,}\b`), "HASH"},
	{regexp.MustCompile(`(^|[^\w.])\d+(\.\d+)*`), "${1}0"},
	{regexp.MustCompile(`\b0 ?(ns|us|ms|s)\b`), "TIME"},
	{regexp.MustCompile(`\b0 ?[kKMGT]i?B\b`), "SIZE"},
	{regexp.MustCompile(`\b0 ([a-z]+?)s\b`), "0 $1"}, // 1 frame, 2 frames
	{regexp.MustCompile(`[ \t]+`), " "},
}

// alike is what lines of two runs have in common.
func alike(line string) string {
	for _, v := range varying {
		line = v.what.ReplaceAllString(line, v.as)
	}
	return strings.TrimSpace(line)
}

// Where an endpoint has a port that a page says, its id follows from its place: the place is
// in the second group, the id in the first or third.
var placed = []*regexp.Regexp{
	regexp.MustCompile(`\bpeer (\d+) at (\S+:\d+)\b()`),
	regexp.MustCompile(`(\b)ocpi-udp-rdma:(\S+;\d+);\d+\.(\d+)\.`),
}

// otherIDs reports whether an endpoint has another id in one line than in the other, though both
// say that it is at the same place.
func otherIDs(got, want string) bool {
	for _, p := range placed {
		ids := make(map[string]string)
		for _, m := range p.FindAllStringSubmatch(got, -1) {
			ids[m[2]] = m[1] + m[3]
		}
		for _, m := range p.FindAllStringSubmatch(want, -1) {
			if id, same := ids[m[2]]; same && id != m[1]+m[3] {
				return true
			}
		}
	}
	return false
}

// differ compares what was printed with what a page shows, in which a line of three dots
// stands for any lines.
func differ(got string, shown []string) error {
	rest := strings.Split(strings.TrimRight(got, "\n"), "\n")
	skip := false
	for _, want := range shown {
		if want == "..." {
			skip = true
			continue
		}
		for skip && len(rest) > 0 && alike(rest[0]) != alike(want) {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return fmt.Errorf("the page shows a line that is not printed: %s", want)
		}
		if alike(rest[0]) != alike(want) || otherIDs(rest[0], want) {
			return fmt.Errorf("the page shows  %s\nprinted is      %s", want, rest[0])
		}
		rest, skip = rest[1:], false
	}
	if len(rest) > 0 && !skip {
		return fmt.Errorf("the page does not show what is printed: %s", rest[0])
	}
	return nil
}

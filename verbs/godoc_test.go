package verbs_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestGoDocShowsTheFace runs what a person does.
func TestGoDocShowsTheFace(t *testing.T) {
	t.Parallel()
	for args, wants := range map[string][]string{
		"Work":                   {"FetchAdd STag, TO, Operand", "Fence bool", "They are not the program's until the work completes"},
		"Completion":             {"Old uint64", "func (c *Completion) QueuePair() *QueuePair"},
		"Receive":                {"A message that is longer ends the connection"},
		"Region":                 {"func (r *Region) Key() Key", "func (r *Region) Bind("},
		"Domain.RegisterFile":    {"func (d *Domain) RegisterFile(file *os.File, offset, length int64, rights Rights, o *RegionOptions) (*Region, error)"},
		"Rights":                 {"FlushPersistent brings a file's bytes to its storage"},
		"Op":                     {"OpCompareSwap // replaces eight bytes"},
		"Extensions":             {"Atomics Extensions = 1 << iota // FetchAdd"},
		"TerminateError":         {"Fault Fault", "Header Header", "Remote bool"},
		"Fault":                  {"FaultTaggedBounds Fault = 0x1101", "func (f Fault) Layer() uint8"},
		"RejectedError":          {"Private []byte"},
		"Ready":                  {"ReadyWrite Ready = 1 << iota"},
		"ErrFull":                {"ErrNotAgreed", "the queue is full"},
		"CompletionQueue":        {"func (q *CompletionQueue) WaitEvent("},
		"Stats":                  {"Unanswered int", "ReadBytes"},
		"QueuePair.Write":        {"If ctx ends while the request is under way, so does the queue pair"},
		"Options.Posted":         {"before the peer can send"},
		"SharedReceives.Post":    {"It completes in the queue of the queue pair that takes it"},
		"Host.Dial":              {"RejectedError if the peer's program does not want"},
		"RegionOptions.Only":     {"the one queue pair that may use the memory"},
		"Completion.Invalidated": {"the peer withdrew the memory"},
	} {
		out, err := exec.Command("go", "doc", ".", args).CombinedOutput()
		if err != nil {
			t.Errorf("go doc %s: %v: %s", args, err, out)
		}
		said := strings.Join(strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(string(out))), " ")
		for _, want := range wants {
			if !strings.Contains(said, strings.NewReplacer("[", "", "]", "").Replace(want)) {
				t.Errorf("go doc %s does not say %q:\n%s", args, want, out)
			}
		}
		// What is for streams alone is not the program's to see.
		for _, leak := range []string{"Complete(", "Take(", "rdmap.Completion", "memory.Stream"} {
			if strings.Contains(said, leak) {
				t.Errorf("go doc %s shows %s:\n%s", args, leak, out)
			}
		}
	}
}

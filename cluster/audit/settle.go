package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
)

const fileMode = 0o640

// cutSuffix is the suffix of the file for complete lines after a torn one.
const cutSuffix = ".cut"

// settle truncates a file after its last complete event and returns the event's number; 0: no event, or no
// file.
func settle(path string, logger *slog.Logger) (last uint64, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("audit file: %w", err)
	case !info.Mode().IsRegular(): // reading a pipe would block
		return 0, fmt.Errorf("audit file: %s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("audit file: %w", err)
	}
	defer func() { _ = file.Close() }()
	line, end, torn, err := readWhole(file)
	if err != nil {
		return 0, fmt.Errorf("audit file: %w", err)
	}
	if len(line) > 0 {
		if last, err = numberOf(line); err != nil {
			return 0, notOurs(path, err)
		}
	}
	if len(torn) > 0 {
		err = cut(path, end, torn, logger)
	}
	return last, err
}

// readWhole reads the lines before the first torn one. After a power cut, NULs replace unwritten data; JSON
// has none. The data behind them is no older than the data they replaced.
func readWhole(file io.Reader) (last []byte, end int64, torn []byte, err error) {
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, 0, nil, err
		}
		if err == io.EOF || bytes.IndexByte(line, 0) >= 0 {
			rest, err := io.ReadAll(reader)
			return last, end, append(line, rest...), err
		}
		last = line
		end += int64(len(line))
	}
}

// cut copies complete lines to another file: the state machine may not repeat old ones.
func cut(path string, end int64, torn []byte, logger *slog.Logger) error {
	if torn[0] != '{' && torn[0] != 0 {
		return notOurs(path, errors.New("it is not JSON"))
	}
	if bytes.IndexByte(torn, '\n') >= 0 {
		if err := appendTo(path+cutSuffix, torn); err != nil {
			return fmt.Errorf("audit file: %w", err)
		}
		logger.Warn("the audit file has a hole; the rest after it is moved", "path", path, "to", path+cutSuffix)
	}
	if err := os.Truncate(path, end); err != nil {
		return fmt.Errorf("audit file: %w", err)
	}
	logger.Warn("cut the torn end off the audit file", "path", path, "size", end, "cut", len(torn))
	return nil
}

func appendTo(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

func notOurs(path string, err error) error {
	return fmt.Errorf("%s does not end with a lockfs event (%w), so lockfs does not append to it: "+
		"move the file away, and lockfs begins a new one", path, err)
}

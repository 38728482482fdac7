package coincide;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local file system, but the modes of files are set without the command chmod. */
public class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new Unchecked());
  }

  /** The files below the checksums. */
  public static class Unchecked extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission mode) throws IOException {
      if (mode.getStickyBit()) {
        super.setPermission(path, mode);
      } else {
        Files.setPosixFilePermissions(
            pathToFile(path).toPath(), PosixFilePermissions.fromString(mode.toString()));
      }
    }
  }
}

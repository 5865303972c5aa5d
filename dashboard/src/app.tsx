// The whole page: the sign-in, or the frame with the page of the address.
import { Frame } from "./frame";
import { path } from "./router";
import { pageAt } from "./routes";
import { session } from "./session";
import { SignIn } from "./signin";
import { startStream } from "./stream";

export function App() {
  if (session.value === undefined) return null;
  if (session.value === null) return <SignIn />;
  startStream();
  const { Page, values } = pageAt(path.value);
  return (
    <Frame>
      <Page values={values} />
    </Frame>
  );
}

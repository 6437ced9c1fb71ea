// Starts `tachograph lsp` for Python files. The server asks for choices itself; its commands become the palette's.
import { ExtensionContext, window, workspace } from "vscode";
import { LanguageClient, ShowMessageRequest } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  const [command, ...args] = workspace.getConfiguration("tachograph").get<string[]>("command", ["tachograph", "lsp"]);
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath;
  client = new LanguageClient(
    "tachograph",
    "tachograph",
    { command, args, options: { cwd: folder } },
    // Texts of a recording are untrusted: no HTML, no command links.
    {
      documentSelector: [{ scheme: "file", language: "python" }],
      markdown: { isTrusted: false, supportHtml: false },
    },
  );
  context.subscriptions.push(client);
  await client.start();
  // A choice among a dozen: a list to type in, and not a dozen buttons.
  client.onRequest(ShowMessageRequest.type, async ({ message, actions = [] }) => {
    const title = await window.showQuickPick(actions.map((action) => action.title), { placeHolder: message });
    return title === undefined ? null : { title };
  });
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}
